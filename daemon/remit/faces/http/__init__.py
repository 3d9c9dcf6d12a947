"""The HTTP face; `face.serve` is the way in."""
