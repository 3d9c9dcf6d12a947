"""Ways in. Each decodes, calls the dispatcher and encodes; none has a power of its own."""
