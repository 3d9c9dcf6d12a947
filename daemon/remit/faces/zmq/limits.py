"""What one client may cost the daemon, and what the face has counted."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the socket; every queue between a client and the daemon has one."""

    max_message: int = 1 << 20
    in_flight: int = 256
    backlog: int = 1024
    backlog_bytes: int = 4 << 20
    high_water: int = 128
    batch: int = 256
    listen_backlog: int = 512
    handshake_ms: int = 5_000
    heartbeat_ms: int = 5_000
    heartbeat_timeout_ms: int = 20_000
    drain_seconds: float = 4.0
    linger_ms: int = 1_000
    connections: int = 4096
    """Of all who have spoken, but operators."""
    connections_per_key: int = 256
    operators: int = 16
    """Connections that are kept for operators."""
    silent: int = 1024
    """Connections that have not spoken: in the handshake, or behind it without a message."""
    silent_operators: int = 4
    """The same, at the door of operators."""
    silent_seconds: float = 0.05
    """So long one may be silent when others wait for its place."""
    spare_descriptors: int = 8
    """Nobody is let in while fewer are free."""


class Stats(msgspec.Struct):
    """Plain counters; whoever shows them reads the fields."""

    messages: int = 0
    bad_frames: int = 0
    dropped: int = 0
    clients: int = 0
    jobs: int = 0
    evicted: int = 0
    admitted: int = 0
    refused: int = 0
    crowded: int = 0
    """Connections that were refused because there were too many."""
    silenced: int = 0
    """Connections that lost their place to others, as they said nothing."""
