"""Plain values and their parsers: no file, clock, socket or await."""
