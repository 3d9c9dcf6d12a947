"""What a link to an upstream server tells: its tools, an answer, and how it is."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from remit.model.upstream import UpstreamTool

State = Literal["idle", "starting", "ready", "failing", "stopped"]
Progress = Callable[[float, float | None, str], None]
"""Told how far a call is: how much, of how much (None: unknown), and a line of text."""


class LeftOut(msgspec.Struct, frozen=True):
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
    reasons: tuple[LeftOut, ...] = ()
    """Why, for the first of those that were left out."""

    def is_same(self, other: "Listing | None") -> bool:
        """Tell whether both say the same, as JSON: for Python 1, 1.0 and True are equal."""
        ours, theirs = (msgspec.json.encode(one, order="deterministic") for one in (self, other))
        return ours == theirs


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a tool, as MCP writes it: blocks of content, and data beside them."""

    content: list[dict[str, Any]]
    structured_content: Any | None = None
    is_error: bool = False


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is. `since` is when it came into this state, by the clock of the link."""

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


class Limits(msgspec.Struct, frozen=True, kw_only=True):
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
