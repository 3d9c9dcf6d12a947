"""Putting the events of upstream tools in force: one revision for each change, and never half."""

from collections.abc import Iterable

import structlog

from remit.errors import RemitError
from remit.features.upstreams.router import Switchboard
from remit.features.upstreams.server import UpstreamServer
from remit.features.upstreams.table import Serve, trusted_in, with_server
from remit.kernel.authority.handlers import HandlerTable
from remit.kernel.authority.revision import Authority
from remit.kernel.reload.reload import Reloader
from remit.model.principal import Cause

log = structlog.get_logger()


class UpstreamEvents:
    """Brings the events of servers to what is trusted of them."""

    def __init__(
        self,
        authority: Authority,
        reloader: Reloader,
        board: Switchboard,
        living: dict[str, UpstreamServer],
        serve: Serve,
    ) -> None:
        """Wire the parts.

        Args:
            authority: knows the handlers in force.
            reloader: puts others in force.
            board: where calls go.
            living: the servers that there are; one that is not among them has no events.
            serve: makes handlers.
        """
        self._authority = authority
        self._reloader = reloader
        self._board = board
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
                self._board.trust(server.name, prints)

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
