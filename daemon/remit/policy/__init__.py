"""Deciding, explaining and planning. Nothing here reads a file, a clock or a socket, or waits."""
