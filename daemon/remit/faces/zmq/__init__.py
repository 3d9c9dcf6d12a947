"""The ZeroMQ face; `face.serve` is the way in."""
