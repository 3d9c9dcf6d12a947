"""Capabilities that are of use on the first day, one file each."""
