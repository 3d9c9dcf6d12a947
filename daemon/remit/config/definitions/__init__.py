"""Capabilities, compositions and launchers as operators write them."""
