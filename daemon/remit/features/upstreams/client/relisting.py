"""When the list of a server is asked for anew: at once for people, with patience for the server."""

import math

import anyio

from remit.features.upstreams.client.types import Limits, Listing

# Which era of the protocol a server is greeted in.
#
# The newer greeting goes first, and a server that does not know it answers with an error. But
# some end instead, or never answer: those are greeted the old way when they are started again.


class Eras:
    """The greeting of one server."""

    def __init__(self, *, is_process: bool) -> None:
        self._open = is_process
        self._turned = False
        self.mode = "auto"

    def settle(self) -> None:
        """It answered: so it is greeted from now on."""
        self._open = False

    def failed(self, *, during: bool) -> bool:
        """It did not answer; tells whether to try the other greeting at once.

        Args:
            during: whether it ended while it was greeted.
        """
        if not self._open:
            return False
        first, self._turned = not self._turned, True
        self.mode = "legacy" if self.mode == "auto" else "auto"
        return first and during


# What a connection lets its keeper know on its own.


class GoneError(Exception):
    """The server went away, or could not be asked; the text says what is known of it."""


class Signs:
    """It ended; its list may have changed. `wake` is set by either, and renewed by who waits."""

    def __init__(self) -> None:
        self.wake = anyio.Event()
        self.ended = False
        self.reason = ""
        self.changed_at: float | None = None

    def end(self, reason: str = "") -> None:
        """It cannot be used any more; the first reason counts."""
        self.reason = self.reason or reason
        self.ended = True
        self.wake.set()

    def change(self) -> None:
        """Its list may have changed; however often this is said, it is once until someone looks."""
        if self.changed_at is None:
            self.changed_at = anyio.current_time()
            self.wake.set()


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
