"""When the list of a server is asked for anew: at once for people, with patience for the server."""

import math

import anyio

from remit.upstream.shapes import Limits, Listing
from remit.upstream.signs import GoneError

_GATHER_SECONDS = 0.03
"""A server that changes ten tools says so ten times."""
_SHORTEST_GAP = 0.1
_LONGEST_GAP = 60.0
_QUIET_SECONDS = 10.0
"""Whoever was quiet for so long is believed at once again."""


class Ticket:
    """Somebody waits for a list; all who come before it is asked for share one."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._listing: Listing | None = None
        self._reason = ""

    def give(self, listing: Listing) -> None:
        """Here it is."""
        self._listing = listing
        self._done.set()

    def refuse(self, reason: str) -> None:
        """There will be none."""
        self._reason = reason
        self._done.set()

    async def wait(self) -> Listing:
        """The list.

        Raises:
            GoneError: there is none.
        """
        await self._done.wait()
        if self._listing is None:
            raise GoneError(self._reason)
        return self._listing


class Patience:
    """How soon a change that the server tells is looked at."""

    def __init__(self, limits: Limits) -> None:
        self._usual = limits.relist_seconds
        self._gap = _SHORTEST_GAP
        self._last = -math.inf

    def due(self, changed_at: float | None) -> float:
        """When to ask for the list; never, when nothing changed."""
        if changed_at is None:
            return math.inf
        if changed_at - self._last > _QUIET_SECONDS:
            self._gap = _SHORTEST_GAP
        return max(changed_at + _GATHER_SECONDS, self._last + self._gap)

    def asked(self) -> None:
        """The list is asked for now."""
        self._last = anyio.current_time()

    def found(self, *, changed: bool) -> None:
        """It was right, or cried wolf: then it is believed less and less quickly."""
        self._gap = min(self._gap * 2, self._usual if changed else _LONGEST_GAP)
