"""Suspicious text: rules, views, judgements of tools and names, reports."""
