"""One upstream server while the daemon runs, and how all of them are restored at its start.

What was trusted when the daemon last ran is served again before the first revision; no server is
started for it. The table of handlers has exactly the events of the tools that are trusted.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec
import structlog
from anyio.abc import TaskGroup

from remit.errors import DefinitionError, Problem, RemitError, UnavailableError
from remit.features.upstreams.client.state import Health, OmittedTool, OnListed
from remit.features.upstreams.pins import KnownServer, read_pins, served_tools
from remit.features.upstreams.router import (
    Serve,
    ServerClient,
    UpstreamRouter,
    handlers_of,
)
from remit.kernel.authority.revision import HandlerTable
from remit.model.event import EventSpec
from remit.model.principal import Cause
from remit.model.upstream import Upstream, UpstreamTool

if TYPE_CHECKING:
    from remit.kernel.authority.revision import Authority
    from remit.kernel.reload.reload import Reloader

log = structlog.get_logger()
MakeClient = Callable[[Upstream, OnListed], ServerClient]
_MOST_TOLD = 5
_REFRESH_SECONDS = 5.0
Read = Callable[[], tuple[Upstream, ...]]


class UpstreamServer:
    """An upstream server at run time: its entry, its pins, and the task that keeps its client."""

    def __init__(self, upstream: Upstream, known: KnownServer, *, problem: str = "") -> None:
        self.upstream = upstream
        self.known = known
        self.problem = problem
        """Why its events are not as they should be; empty when they are."""
        self.unkept = ""
        """Why its pins could not be written down; empty when they could."""
        self.left_out = 0
        self.left_out_reasons: tuple[OmittedTool, ...] = ()
        self.client: ServerClient | None = None
        self._scope: anyio.CancelScope | None = None
        self._refreshing = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.upstream.name

    @property
    def health(self) -> Health:
        """How it is now."""
        return Health() if self.client is None else self.client.health

    def start(self, client: ServerClient, tasks: TaskGroup) -> None:
        """Keep its client in a task of its own."""
        self.client = client
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._keep, client, self._scope)

    async def _keep(self, client: ServerClient, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await client.run()
            except Exception:  # a server that breaks its client must not end the daemon
                self.problem = "its link has broken; the log says why"
                log.exception("upstream_broken", upstream=self.name)

    def stop(self) -> None:
        """End its client; the process of the server ends with it."""
        if self._scope is not None:
            self._scope.cancel()

    def can_become(self, upstream: Upstream) -> bool:
        """Tell whether another entry is about the same process or address, reached the same way."""
        return _reached(self.upstream) == _reached(upstream)

    def is_same(self, known: KnownServer) -> bool:
        """Tell whether nothing worth keeping has changed."""
        return msgspec.structs.replace(known, listed_at=self.known.listed_at) == self.known

    def refresh_soon(self, tasks: TaskGroup) -> None:
        """Ask it for its tools again if it runs; not more than once in a while."""
        if not self._refreshing and self.health.state == "ready":
            self._refreshing = True
            tasks.start_soon(self._refresh)

    async def _refresh(self) -> None:
        try:
            if self.client is not None:
                await self.client.refresh()
        except RemitError as error:
            log.info("upstream_not_refreshed", upstream=self.name, problem=error.message)
        except Exception:  # nor must a list that nobody asked for
            log.exception("upstream_not_refreshed", upstream=self.name)
        await anyio.sleep(_REFRESH_SECONDS)
        self._refreshing = False

    def tell_changes(self, before: KnownServer) -> None:
        """Log which tools have newly come to wait: each that was trusted, and how many others."""
        waiting = []
        for tool, pin in self.known.tools.items():
            old = before.tools.get(tool)
            waited = old is not None and old.status == "pending"
            if pin.status != "pending" or (waited and old == pin):
                continue
            if old is None or old.status != "trusted":
                waiting.append(tool)
                continue
            log.warning(
                "tool_quarantined",
                upstream=self.name,
                tool=tool,
                reason=pin.reason,
                hint="remit review list --full",
            )
        if waiting:
            log.warning(
                "tools_wait",
                upstream=self.name,
                count=len(waiting),
                first=sorted(waiting)[:_MOST_TOLD],
                hint="remit review list --kind tool",
            )


def _reached(upstream: Upstream) -> Upstream:
    """An entry without what only decides about its tools."""
    return msgspec.structs.replace(
        upstream, include=(), exclude=(), effects={}, trust="review", place=None
    )


class UpstreamEvents:
    """Brings the events of servers to what is trusted of them."""

    def __init__(
        self,
        authority: "Authority",
        reloader: "Reloader",
        router: UpstreamRouter,
        living: dict[str, UpstreamServer],
        serve: Serve,
    ) -> None:
        """Wire the parts.

        Args:
            authority: knows the handlers in force.
            reloader: puts others in force.
            router: where calls go.
            living: the servers that there are; one that is not among them has no events.
            serve: makes handlers.
        """
        self._authority = authority
        self._reloader = reloader
        self._router = router
        self._living = living
        self._serve = serve

    async def put_in_force(self, servers: Iterable[UpstreamServer], cause: Cause) -> None:
        """Bring the events of servers to what is trusted, all as one revision.

        When that cannot be, each server is tried by itself. One whose events still cannot be put in
        force is reported: it gets nothing new, and what it may not serve any more is taken away.
        """
        wanted = list(servers)
        for server in wanted:
            server.problem = ""
        if await self._change(wanted, cause):
            for server in wanted:
                problem = await self._change([server], cause)
                if problem:
                    server.problem = problem
                    await self._change([server], cause, narrow=True)
        for server in wanted:
            if server.problem:
                log.error("upstream_not_served", upstream=server.name, problem=server.problem)
            if self._lives(server):
                table = self._authority.current.table
                prints = trusted_in(table, server.upstream, server.known)
                self._router.trust(server.name, prints)

    def _lives(self, server: UpstreamServer) -> bool:
        return self._living.get(server.name) is server

    async def _change(
        self, servers: list[UpstreamServer], cause: Cause, *, narrow: bool = False
    ) -> str:
        def change(table: HandlerTable) -> HandlerTable:
            for server in servers:
                table = self._changed(table, server, narrow=narrow)
            return table

        try:
            await self._reloader.change_events(change, cause)
        except RemitError as error:
            return error.message
        return ""

    def _changed(
        self, table: HandlerTable, server: UpstreamServer, *, narrow: bool
    ) -> HandlerTable:
        source = server.upstream.source
        if not self._lives(server):
            return table.without_source(source)
        if not narrow:
            return with_server(table, server.upstream, server.known, self._serve)
        trusted = trusted_in(table, server.upstream, server.known)
        present = {name: table.by_event[name] for name in table.events_of(source)}
        left = {name: one for name, one in present.items() if one.tool.name in trusted}
        return table if left == present else table.with_source(source, left)


class RestoredServer(msgspec.Struct, frozen=True):
    """A server as it is written down, and what is known about it."""

    upstream: Upstream
    known: KnownServer
    problem: str = ""
    """Why its events are not in force; empty when they are."""


class RestoredServers(msgspec.Struct, frozen=True, eq=False):
    """The table with the events of upstream tools, and the servers behind them."""

    table: HandlerTable
    router: UpstreamRouter
    serve: Serve
    servers: tuple[RestoredServer, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What is wrong with the file of servers, or with what is known about them."""


class UpstreamSources(msgspec.Struct, frozen=True, eq=False):
    """The sources of upstream servers: their file, the folder of pins, and a factory of clients."""

    read: Read
    folder: Path
    make_client: MakeClient
    restored: RestoredServers


def no_servers(table: HandlerTable) -> UpstreamSources:
    """Where there are no upstream servers."""

    def make_client(upstream: Upstream, _on_listed: OnListed) -> ServerClient:
        raise UnavailableError(f"{upstream.name!r} is not kept here")

    def serve(_present: Any, spec: EventSpec, _tool: UpstreamTool, _fingerprint: str) -> Any:
        raise UnavailableError(f"{spec.name!r} is not served here")

    return UpstreamSources(
        tuple, Path(), make_client, RestoredServers(table, UpstreamRouter(), serve)
    )


async def restore_servers(
    table: HandlerTable, read: Read, folder: Path, router: UpstreamRouter, serve: Serve
) -> RestoredServers:
    """Serve what was trusted when the daemon last ran, before the first revision.

    A file with mistakes names no servers; pins that cannot be read are no trust.
    """
    try:
        upstreams = await anyio.to_thread.run_sync(read)
    except DefinitionError as error:
        told = [problem.to_json() for problem in error.problems]
        log.error("upstreams_rejected", problems=told)  # noqa: TRY400 - they say it all
        return RestoredServers(table, router, serve, (), error.problems)
    names = [upstream.name for upstream in upstreams]
    pins = await anyio.to_thread.run_sync(read_pins, folder, names)
    for problem in pins.problems:
        log.error("upstream_pins_damaged", problem=str(problem))
    servers = []
    for upstream in upstreams:
        known = pins.known.get(upstream.name) or KnownServer(name=upstream.name)
        why = ""
        try:
            table = with_server(table, upstream, known, serve)
        except RemitError as error:
            why = error.message
            log.error("upstream_not_served", upstream=upstream.name, problem=why)  # noqa: TRY400
        router.trust(upstream.name, trusted_in(table, upstream, known))
        servers.append(RestoredServer(upstream, known, why))
    return RestoredServers(table, router, serve, tuple(servers), pins.problems)


def with_server(
    table: HandlerTable, upstream: Upstream, known: KnownServer, serve: Serve
) -> HandlerTable:
    """The table with exactly the events of a server that are trusted; the same when it has them.

    Raises:
        ConflictError: there would be too many.
        HandlerError: a name is somebody else's.
    """
    handlers = handlers_of(upstream, known, serve, table.by_event)
    present = {name: table.by_event[name] for name in table.events_of(upstream.source)}
    if handlers == present:  # handlers are compared by identity: calls that run keep theirs
        return table
    if not handlers:
        return table.without_source(upstream.source)
    return table.with_source(upstream.source, handlers)


def trusted_in(table: HandlerTable, upstream: Upstream, known: KnownServer) -> dict[str, str]:
    """The fingerprints of the tools that are in force and trusted."""
    served = served_tools(upstream, known)
    found = (table.by_event[name] for name in table.events_of(upstream.source) if name in served)
    return {
        handler.tool.name: handler.fingerprint
        for handler in found
        if known.tools[handler.tool.name].fingerprint == handler.fingerprint
    }
