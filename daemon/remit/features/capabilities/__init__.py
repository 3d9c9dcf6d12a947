"""Capabilities that are made at run time, in versions."""
