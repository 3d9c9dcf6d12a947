"""Messages from one agent to another: the event that carries them, and their bounds."""

DIRECT_EVENT = "message:direct"
MAX_WAITING = 100
MAX_WAITING_BYTES = 2 << 20
"""Of all that waits for one agent."""
KEEP_SECONDS = 24 * 3600.0
MESSAGE_BYTES = 65_536
