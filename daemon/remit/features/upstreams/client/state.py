"""What is known of one upstream server while it runs: its tools, its health, and its signals.

A list of tools is asked for again at once when a person asks, and after a while when the server
says that it has changed.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import anyio
import msgspec

from remit.model.upstream import UpstreamTool

State = Literal["idle", "starting", "ready", "failing", "stopped"]
Progress = Callable[[float, float | None, str], None]
"""Told how far a call is: how much, of how much (None: unknown), and a line of text."""
_GATHER_SECONDS = 0.03
"""A server that changes ten tools says so ten times."""
_SHORTEST_GAP = 0.1
_LONGEST_GAP = 60.0
_QUIET_SECONDS = 10.0
"""Whoever was quiet for so long is believed at once again."""


class OmittedTool(msgspec.Struct, frozen=True):
    """A tool of a server that cannot be taken over."""

    name: str
    reason: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All tools of a server at one moment, in its order; names are unique."""

    tools: tuple[UpstreamTool, ...]
    protocol: str = ""
    server_name: str = ""
    server_version: str = ""
    left_out: int = 0
    """How many tools are not among them."""
    reasons: tuple[OmittedTool, ...] = ()
    """Why, for the first of those that were left out."""

    def is_same(self, other: "Listing | None") -> bool:
        """Tell whether both say the same, as JSON: for Python 1, 1.0 and True are equal."""
        ours, theirs = (msgspec.json.encode(one, order="deterministic") for one in (self, other))
        return ours == theirs


OnListed = Callable[[Listing], Awaitable[None]]
"""Told each list of tools."""


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a tool, as MCP writes it: blocks of content, and data beside them."""

    content: list[dict[str, Any]]
    structured_content: Any | None = None
    is_error: bool = False


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is. `since` is when it came into this state, by the clock of the client."""

    state: State = "idle"
    reason: str = ""
    """Why it is failing or stopped; no secret is in it."""
    since: float = 0.0
    restarts: int = 0
    calls: int = 0
    failures: int = 0
    """Calls that got no answer: errors that a tool tells are answers."""
    last_error: str = ""
    protocol: str = ""
    server_info: str = ""
    latency: float | None = None
    """Seconds that a call takes, smoothed over the last ones; None: none was answered yet."""
    retry_after: float | None = None
    """Seconds until the next start is tried, when failing."""


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an upstream server is taken."""

    message_bytes: int = 4 * 1024 * 1024
    """One message: a result, or one page of a list."""
    list_bytes: int = 16 * 1024 * 1024
    """All definitions of tools together."""
    tools: int = 2_000
    pages: int = 200
    waiting: int = 64
    """Calls that wait for a free slot; one more is refused."""
    relist_seconds: float = 1.0
    """A server that keeps changing its list is asked for it so often; the first times sooner."""
    stop_seconds: float = 2.0
    """From asking a process to end until it is killed."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    well_after: float = 60.0
    """A server that ran so long starts anew from the first pause when it fails."""


class HandshakeMode:
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


class ServerGoneError(Exception):
    """The server went away, or could not be asked; the text says what is known of it."""


class Signals:
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


class ListRequest:
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
            ServerGoneError: there is none.
        """
        await self._done.wait()
        if self._listing is None:
            raise ServerGoneError(self._reason)
        return self._listing


class RelistSchedule:
    """How soon a change that the server tells is looked at."""

    def __init__(self, limits: ClientLimits) -> None:
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
