"""The built-in events, one file a namespace."""
