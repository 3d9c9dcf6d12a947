"""The token bill: what was put before models."""
