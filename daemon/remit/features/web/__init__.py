"""Fetching pages without reaching anything private."""
