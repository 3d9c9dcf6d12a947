"""Processes that the daemon starts, and that none outlives it."""
