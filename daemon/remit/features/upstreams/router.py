"""Calls of upstream tools: which of them may be made at this moment, and over which link."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from remit.errors import ToolFailedError, UnavailableError
from remit.features.upstreams.client.types import CallOutcome, Health, Listing, Progress
from remit.model.event import EventSpec
from remit.model.upstream import UpstreamTool
from remit.text.clean import cleaned_text

QUARANTINED = "quarantined"
_MESSAGE = 300
_UNKNOWN_TOOL = re.compile(r"unknown tool|no such tool|tool\b.{0,80}\bnot found", re.IGNORECASE)


class Line(Protocol):
    """A supervised upstream server, as calls need it; `client.client.Link` is one."""

    @property
    def health(self) -> Health:
        """How it is now."""

    async def run(self) -> None:
        """Keep it until cancelled."""

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        progress: Progress | None = None,
        check: Callable[[], None] | None = None,
    ) -> CallOutcome:
        """Call a tool; `check` is asked right before it is sent, and may refuse."""

    async def refresh(self) -> Listing:
        """Ask for the list of tools anew."""


class Served(Protocol):
    """A handler of an upstream tool, as far as calls go."""

    spec: EventSpec
    server: str
    tool: UpstreamTool
    fingerprint: str


OnListed = Callable[[Listing], Awaitable[None]]


class Switchboard:
    """The links that there are, and the fingerprints of the tools that may be called over them.

    INVARIANT: a tool is called only with the fingerprint that is trusted when the call is sent. A
    list that shows another one takes the trust away before anybody is asked or told.
    """

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._trusted: dict[str, dict[str, str]] = {}
        self._listed: dict[str, Mapping[str, str]] = {}
        """What each server showed last; nothing of one that was not asked yet."""
        self.on_doubt: Callable[[str], None] | None = None
        """Told the server when an answer makes its list of tools doubtful."""

    def connect(self, server: str, line: Line) -> None:
        """Send the calls of a server over this link from now on."""
        self._lines[server] = line

    def disconnect(self, server: str) -> None:
        """Send no more calls to a server, and trust nothing of it."""
        self._lines.pop(server, None)
        self._trusted.pop(server, None)
        self._listed.pop(server, None)

    def trust(self, server: str, prints: Mapping[str, str]) -> None:
        """Let exactly these tools be called, each with its fingerprint."""
        self._trusted[server] = dict(prints)

    def distrust(self, server: str, tool: str) -> None:
        """Let a tool be called no more."""
        self._trusted.get(server, {}).pop(tool, None)

    def listed(self, server: str, prints: Mapping[str, str]) -> None:
        """Take in what a server lists: what differs from what is trusted is not called any more."""
        self._listed[server] = prints

    def is_trusted(self, handler: Served) -> bool:
        """Tell whether what a handler serves may be called now."""
        server, tool, mark = handler.server, handler.tool.name, handler.fingerprint
        listed = self._listed.get(server)
        is_shown = listed is None or listed.get(tool) == mark
        return is_shown and self._trusted.get(server, {}).get(tool) == mark

    @property
    def unavailable(self) -> dict[str, str]:
        """The servers that do not answer now, and why."""
        states = ((name, line.health) for name, line in self._lines.items())
        return {
            name: health.reason or health.last_error or f"it is {health.state}"
            for name, health in states
            # One that is started again after it has failed is not there either.
            if health.state in ("failing", "stopped")
            or (health.state == "starting" and health.last_error)
        }

    async def call(
        self, handler: Served, arguments: dict[str, Any], report: Progress | None, /
    ) -> dict[str, Any]:
        """The answer of a tool, as MCP content.

        Raises:
            ToolFailedError: the tool says that it failed, or its answer cannot be passed on.
            UnavailableError: the server is not there, or the tool is not trusted any more.
            RemitError: another way in which nothing came of it.
        """

        def check() -> None:
            if not self.is_trusted(handler):
                raise quarantined(handler)

        check()
        line = self._lines.get(handler.server)
        if line is None:
            message = f"the upstream server {handler.server!r} is not connected"
            hint = "an operator looks at it: remit upstream list"
            raise UnavailableError(message, hint=hint, details={"reason": "not connected"})
        try:
            outcome = await line.call(handler.tool.name, arguments, progress=report, check=check)
        except ToolFailedError:
            self._doubt(handler.server)
            raise
        if outcome.is_error:
            self._failed(handler, outcome)
        answer: dict[str, Any] = {"content": outcome.content}
        if outcome.structured_content is not None:
            answer["structured_content"] = outcome.structured_content
        return answer

    def _failed(self, handler: Served, outcome: CallOutcome) -> None:
        texts = (block.get("text") for block in outcome.content)
        said = " ".join(text for text in texts if isinstance(text, str))[:_MESSAGE]
        if _UNKNOWN_TOOL.search(said):  # many servers say so in an answer
            self._doubt(handler.server)
        details: dict[str, Any] = {"content": outcome.content}
        if outcome.structured_content is not None:
            details["structured_content"] = outcome.structured_content
        message = " ".join(cleaned_text(said).split()) or f"{handler.tool.name} failed"
        hint = "the upstream tool said so; details.content is all that it said"
        raise ToolFailedError(message, hint=hint, details=details)

    def _doubt(self, server: str) -> None:
        if self.on_doubt is not None:
            self.on_doubt(server)


def quarantined(handler: Served) -> UnavailableError:
    """The answer to a call of a tool that is not what was trusted."""
    return UnavailableError(
        f"{handler.spec.name} is in quarantine: it is not what was trusted",
        hint="an operator looks at it: remit review list",
        details={"reason": QUARANTINED},
    )
