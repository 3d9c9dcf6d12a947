"""Counts since the start, of the dispatcher, of callers and of faces.

They are plain integers, because the hot path pays for each.
"""

from typing import Protocol

import msgspec

MOST_TALLIES = 20_000


class Tally(msgspec.Struct, eq=False):
    """Counts of one caller."""

    calls: int = 0
    denied: int = 0


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
    by_caller: dict[str, Tally] = {}

    def begin(self, caller: str) -> Tally:
        """Start to count for somebody; those who came first make room when there are too many."""
        if len(self.by_caller) >= MOST_TALLIES:
            for name in list(self.by_caller)[: MOST_TALLIES // 2]:
                del self.by_caller[name]
        found = self.by_caller[caller] = Tally()
        return found

    def deny(self, caller: str) -> None:
        """Count a denial."""
        self.denied += 1
        tally = self.by_caller.get(caller)
        if tally is not None:
            tally.denied += 1


class Traffic(Protocol):
    """Counts of a face."""

    clients: int
    """Connections that are open."""
    dropped: int
    """Pushed events and answers that clients missed because they read too slowly."""
    evicted: int
    """Connections that were cut, of revoked clients and of those that never read."""
    crowded: int
    """Connections that were refused because there were too many."""
    silenced: int
    """Connections that said nothing and lost their place to others."""


class Load(msgspec.Struct, frozen=True):
    """The messages that one principal has not read on its connections."""

    queue: int = 0
    dropped: int = 0
