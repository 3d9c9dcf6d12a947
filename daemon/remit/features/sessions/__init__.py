"""Sessions that only narrow."""
