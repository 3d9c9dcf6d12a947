"""What one HTTP client may cost the daemon, and what the face counts."""

import msgspec

AUDIENCE = "http"
"""Tokens that were made for another face do not count here."""


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the face; every wait for a client ends, and every queue towards one has an end."""

    body_bytes: int = 1 << 20
    bodies_bytes: int = 8 << 20
    """Of the requests of one caller that are being read or answered; one alone may be larger."""
    header_bytes: int = 16 << 10
    header_seconds: float = 10.0
    body_seconds: float = 15.0
    write_seconds: float = 20.0
    idle_seconds: int = 15
    connections: int = 1024
    quiet_seconds: float = 0.25
    """How long a connection may ask nothing when others wait for its place."""
    in_flight: int = 256
    """Requests of one caller that run at once."""
    streams: int = 16
    """Open streams of one caller."""
    backlog: int = 512
    """Events that wait for one stream."""
    backlog_bytes: int = 2 << 20
    heartbeat_seconds: float = 15.0
    drain_seconds: float = 4.0


class HttpStats(msgspec.Struct):
    """Plain counters; the metrics show every field."""

    requests: int = 0
    refused: int = 0
    """Answered before any event was called: no token, no such route, unreadable."""
    streams: int = 0
    """Streams that are open."""
    dropped: int = 0
    """Pushed events that streams missed because they were read too slowly."""
    cut: int = 0
    """Connections that were cut: too slow, or of somebody who may not be here any more."""
