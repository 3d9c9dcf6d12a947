"""Telling hosts that their lists changed: exactly those whose lists did, in both eras.

Until 2025-11-25 a host holds a session and is told on it. From 2026-07-28 on it asks for news with
`subscriptions/listen`, and the answer to that is the stream of news. For each caller that has
shown interest we remember what it was listed last; only a list that differs is news.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakSet

import anyio
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from remit.faces.mcp.tools import McpCaller, Place

log = structlog.get_logger()

Anything = ServerRequestContext[Any, Any]
TOOL_LIST, SKILL_LIST = "tools", "skills"
MOST_CALLERS = 10_000
STREAMS = 64
"""Open streams of news of one caller."""
_PLACES = 64
"""Sessions in which one caller is told of its lists; the oldest goes first."""
_LOOK_SECONDS = 10.0
_AGAIN_SECONDS = (0.5, 60.0)
"""Until a list is looked at again that could not be read; each time twice as long."""
_SEND_SECONDS = 5.0


class _Interest:
    """What one caller was shown in one session or in none, and where it is told of news."""

    def __init__(self, caller: McpCaller) -> None:
        self.caller = caller
        self.shown: dict[str, bytes] = {}
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus, max_buffered_events=64)
        self.open = 0
        self.sessions: WeakSet[Any] = WeakSet()

    @property
    def is_idle(self) -> bool:
        return not self.open and not self.sessions


class Listeners:
    """Every caller that wants to hear of changes."""

    def __init__(self, look: Callable[[McpCaller, str], Awaitable[bytes]]) -> None:
        """Wire the parts.

        Args:
            look: a fingerprint of one kind of list as a caller would be shown it now.
        """
        self._look = look
        self._by_name: dict[str, dict[Place, _Interest]] = {}
        self._dirty: dict[str, None] = {}
        self._again: set[str] = set()
        self._news = anyio.Event()

    def shown(self, ctx: Anything, caller: McpCaller, kind: str, fingerprint: bytes) -> None:
        """Note what a caller was listed, and the session it was listed on."""
        interest = self._interest(caller)
        if interest.shown.setdefault(kind, fingerprint) != fingerprint:
            self.changed(caller.name)  # its other hosts may not know yet
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            # There is no public way to the connection that outlives a request.
            interest.sessions.add(ctx.session._connection)  # noqa: SLF001

    async def listen(
        self, ctx: Anything, caller: McpCaller, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of news, until its host goes away."""
        interest = self._interest(caller)
        if sum(one.open for one in self._by_name[caller.name].values()) >= STREAMS:
            raise MCPError(INTERNAL_ERROR, f"this agent has {STREAMS} streams of news open")
        interest.open += 1
        try:
            for kind in (TOOL_LIST, SKILL_LIST):
                interest.shown.setdefault(kind, await self._look(caller, kind))
            return await interest.listen(ctx, params)
        finally:
            interest.open -= 1

    def changed(self, name: str) -> None:
        """Say that the lists of a caller may have changed; never waits."""
        if name in self._by_name:
            self._dirty[name] = None
            self._news.set()

    def forget(self, name: str) -> None:
        """Drop a caller that was shut out."""
        self._dirty.pop(name, None)
        for interest in self._by_name.pop(name, {}).values():
            interest.listen.close()

    async def run(self) -> None:
        """Look at the lists that may have changed, and tell, until cancelled."""
        pause, longest = _AGAIN_SECONDS
        while True:
            with anyio.move_on_after(pause if self._again else math.inf):
                await self._news.wait()
            self._news = anyio.Event()
            self._dirty |= dict.fromkeys(self._again)
            self._again.clear()
            while self._dirty:
                name = next(iter(self._dirty))
                del self._dirty[name]
                for interest in tuple(self._by_name.get(name, {}).values()):
                    await self._tell(name, interest)
            pause = min(2 * pause, longest) if self._again else _AGAIN_SECONDS[0]

    async def _tell(self, name: str, interest: _Interest) -> None:
        if interest.is_idle:
            self._drop(interest.caller.place)
            return
        news = []
        try:
            with anyio.fail_after(_LOOK_SECONDS):
                for kind in tuple(interest.shown):
                    if await self._differs(interest, kind):
                        news.append(kind)  # noqa: PERF401 - what was seen before a failure counts
        except Exception as error:  # one caller's list must not silence all others
            log.warning("mcp_list_not_read", caller=name, problem=repr(error))
            self._again.add(name)
        with anyio.move_on_after(_SEND_SECONDS):
            for kind in news:
                await self._send(interest, kind)

    async def _differs(self, interest: _Interest, kind: str) -> bool:
        now = await self._look(interest.caller, kind)
        before, interest.shown[kind] = interest.shown[kind], now
        return now != before

    async def _send(self, interest: _Interest, kind: str) -> None:
        if kind == TOOL_LIST:
            await interest.bus.publish(ToolsListChanged())
            for session in tuple(interest.sessions):
                await session.send_tool_list_changed()
            return
        await interest.bus.publish(PromptsListChanged())
        await interest.bus.publish(ResourcesListChanged())
        for session in tuple(interest.sessions):
            await session.send_prompt_list_changed()
            await session.send_resource_list_changed()

    def _interest(self, caller: McpCaller) -> _Interest:
        mine = self._by_name.get(caller.name)
        if mine is None:
            if len(self._by_name) >= MOST_CALLERS:
                self._by_name.pop(next(iter(self._by_name)))
            mine = self._by_name[caller.name] = {}
        interest = mine.get(caller.place)
        if interest is None:
            if len(mine) >= _PLACES:
                mine.pop(next(iter(mine))).listen.close()
            interest = mine[caller.place] = _Interest(caller)
        interest.caller = caller
        return interest

    def _drop(self, place: Place) -> None:
        mine = self._by_name.get(place[0], {})
        mine.pop(place, None)
        if not mine:
            self._by_name.pop(place[0], None)
