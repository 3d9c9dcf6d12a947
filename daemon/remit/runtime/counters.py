"""What was counted since the start: plain integers, because the hot path pays for each."""

import msgspec


class Counters(msgspec.Struct, eq=False):
    """Counts of the dispatcher."""

    started_at: float = 0.0
    requests: int = 0
    denied: int = 0
    failed: int = 0
    internal_errors: int = 0
    timeouts: int = 0
    cancelled: int = 0
    by_event: dict[str, int] = {}
