"""Messages from one agent to another: the event that carries them, and their bounds."""

DIRECT_EVENT = "message:direct"
MAX_WAITING = 100
KEEP_SECONDS = 24 * 3600.0
MESSAGE_BYTES = 65_536
