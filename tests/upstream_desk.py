"""Upstream servers without processes: links that keep the contract of the real one."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from tests.fakes import built_in_handlers, startup, texts
from tests.stores import TemporaryStore

from remit.app.kernel import build_services, make_kernel
from remit.errors import UnavailableError
from remit.features.upstreams.client.state import CallOutcome, Health, Listing, OnListed, Progress
from remit.features.upstreams.router import UpstreamRouter, upstream_handler
from remit.features.upstreams.server import UpstreamSources, restore_servers
from remit.features.upstreams.service import Upstreams
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority, HandlerTable
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.model.principal import OPERATOR, Agent, AgentSpec, Principal
from remit.model.upstream import Upstream, UpstreamTool
from remit_client.wire import Answer


class FakeLink:
    """A server in this process: it lists `tools`, and each call is written down in `calls`."""

    def __init__(self, upstream: Upstream, on_listed: OnListed, tools: list[UpstreamTool]) -> None:
        self.upstream = upstream
        self.tools = tools
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.asked_for_progress = False
        self.outcome = CallOutcome(content=[{"type": "text", "text": "done"}])
        self.state = Health()
        self.stopped = anyio.Event()
        self._on_listed = on_listed

    @property
    def health(self) -> Health:
        return self.state

    async def run(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.stopped.set()

    async def _ready(self) -> None:
        if self.state.state == "failing":
            reason = self.state.reason
            raise UnavailableError(f"it is away: {reason}", details={"reason": reason})
        if self.state.state == "idle":
            self.state = Health(state="ready", protocol="2025-11-25")
            await self._on_listed(self._listing())

    def _listing(self) -> Listing:
        return Listing(tools=tuple(self.tools), protocol="2025-11-25", server_name="fake")

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        progress: Progress | None = None,
        check: Callable[[], None] | None = None,
    ) -> CallOutcome:
        await self._ready()
        if check is not None:
            check()
        self.calls.append((tool, arguments))
        self.asked_for_progress = progress is not None
        if progress is not None:
            progress(1.0, 2.0, "half")
        return self.outcome

    async def refresh(self) -> Listing:
        await self._ready()
        listing = self._listing()
        await self._on_listed(listing)
        return listing


class OutsideDesk:
    """A daemon without sockets and processes, with upstream servers that a test plays."""

    def __init__(
        self,
        folder: Path,
        *upstreams: Upstream,
        extra: str = "",
        profiles: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.upstreams = list(upstreams)
        self.tools: dict[str, list[UpstreamTool]] = {}
        self.links: dict[str, FakeLink] = {}
        self.read: Callable[[], tuple[Upstream, ...]] = lambda: tuple(self.upstreams)
        self._extra = extra
        self._profiles = profiles or {}
        self.now = 1000.0

    def _read_now(self) -> tuple[Upstream, ...]:
        return self.read()

    def _make_link(self, upstream: Upstream, on_listed: OnListed) -> FakeLink:
        tools = self.tools.setdefault(upstream.name, [])
        self.links[upstream.name] = link = FakeLink(upstream, on_listed, tools)
        return link

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        router = UpstreamRouter()
        restored = await restore_servers(
            HandlerTable(built_in_handlers()),
            self._read_now,
            self.folder,
            router,
            partial(upstream_handler, router),
        )
        shared = "  outside:\n    description: x\n    event_patterns: ['mcp:*']\n"
        files = texts(shared + self._extra, **self._profiles)
        self.authority = Authority(restored.table, lambda: files)
        self.store = TemporaryStore(clock=lambda: self.now)
        database = self.store.database
        kernel = make_kernel(
            self.authority,
            database,
            KeyRing("operator-key", self.authority.fleet, self.store),
            clock=lambda: self.now,
            wall_clock=lambda: self.now,
        )
        outside = UpstreamSources(self._read_now, self.folder, self._make_link, restored)
        self.kernel = build_services(kernel, startup(database, outside))
        self.dispatcher = Dispatcher(self.kernel, timeout=5)
        async with self.kernel.service(Upstreams).running():
            yield

    @property
    def served(self) -> set[str]:
        """The events of upstream tools that are in force."""
        return {name for name in self.authority.catalogue.universe.names if name[:4] == "mcp:"}

    def agent(self, name: str, profile: str) -> Principal:
        """A living agent that holds a profile."""
        self.authority.fleet.replace(Agent(id=name, spec=AgentSpec(profile=profile)))
        return Principal(name, "agent", profile)

    async def answer(self, event: str, data: Any = None, who: Principal = OPERATOR) -> Answer:
        return await self.dispatcher.dispatch(who, event, data)

    async def ask(self, event: str, data: Any = None) -> Any:
        answer = await self.answer(event, data)
        assert answer.error is None, answer.error
        return answer.data

    async def refresh(self, server: str) -> None:
        await self.kernel.service(Upstreams).ask(self.kernel.service(Upstreams).servers[server])

    async def decide(self, id_: str, decision: str) -> Answer:
        await self.ask("review:list", {"kind": "tool"})
        return await self.answer("review:decide", {"id": id_, "decision": decision})
