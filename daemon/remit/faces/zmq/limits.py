"""What one client of the socket may cost the daemon, and what the face counts."""

import msgspec


class SocketLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the socket; every queue between a client and the daemon has one."""

    max_message: int = 1 << 20
    in_flight: int = 256
    in_flight_bytes: int = 8 << 20
    """Of the requests of one client that are under way; one alone may be larger."""
    backlog: int = 1024
    backlog_bytes: int = 4 << 20
    """Of what waits for all connections of one principal; four times that for the first of each."""
    high_water: int = 128
    """Messages for one connection that libzmq takes."""
    large: int = 8 << 10
    """A larger message is counted in bytes as well, which libzmq does not."""
    unread_bytes: int = 2 << 20
    """The same of large messages that libzmq holds."""
    inbox_bytes: int = 16 << 20
    """Of messages of one client that were taken in and are not looked at yet."""
    intake: int = 4096
    """Messages that are taken in between two batches."""
    batch: int = 256
    batch_bytes: int = 1 << 20
    """Of requests and their answers between two looks at everything else."""
    listen_backlog: int = 512
    handshake_ms: int = 5_000
    drain_seconds: float = 4.0
    farewell_seconds: float = 0.25
    """Between the last answers of a stopping daemon and the end of its connections."""
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
    """How long one may be silent when others wait for its place."""
    spare_descriptors: int = 8
    """Nobody is let in while fewer are free."""
    keepalive_seconds: int = 20
    """Silence on tcp after which the system asks whether the other side is still there."""


class SocketStats(msgspec.Struct):
    """Plain counters."""

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
