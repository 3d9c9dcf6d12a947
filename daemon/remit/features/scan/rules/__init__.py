"""The rules of the scanner, by subject."""
