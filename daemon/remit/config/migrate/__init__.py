"""Explicit lists rewritten as capabilities, with the proof that nothing changed."""
