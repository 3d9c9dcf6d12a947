"""Putting edited definitions in force, all or nothing."""
