"""The audit: rows in a chain that nobody rewrites, and what is asked of it."""
