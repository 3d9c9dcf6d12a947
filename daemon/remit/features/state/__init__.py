"""The shared state."""
