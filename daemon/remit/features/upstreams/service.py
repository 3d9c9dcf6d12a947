"""The upstream servers of a daemon: their clients, their lists of tools, and the events in force.

Each server has a client in a task of its own. What it lists is held against what is pinned; the
events of what is trusted are put in force as one revision for each list. Trust is taken away at
once and given last: first it is written down, then it is in force.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskGroup

from remit.errors import DefinitionError, Problem, StoreError, UnavailableError
from remit.features.upstreams.client.state import Listing
from remit.features.upstreams.pins import KnownServer, Pin, read_pins, write_pins
from remit.features.upstreams.server import (
    UpstreamEvents,
    UpstreamServer,
    UpstreamSources,
    trusted_in,
)
from remit.features.upstreams.trust import (
    Judge,
    after_listing,
    fingerprint_of,
    neighbours_of,
    unwritten,
)
from remit.kernel.authority.revision import Authority
from remit.kernel.reload.reload import REJECTED, Reloader
from remit.model.event import Service
from remit.model.principal import DAEMON_ID, Cause
from remit.model.schema import bounded
from remit.model.upstream import Upstream
from remit.policy.tool_names import shares_name
from remit.policy.upstream_tools import upstream_event

log = structlog.get_logger()
CAUSE = Cause("events_changed")


class Upstreams(Service):
    """Keeps the upstream servers."""

    def __init__(
        self,
        authority: Authority,
        reloader: Reloader,
        sources: UpstreamSources,
        *,
        tell: Callable[[str, Any, str], object],
        clock: Callable[[], float],
    ) -> None:
        """Wire the parts; nothing is started before `running`.

        Args:
            authority: knows the revision in force.
            reloader: puts other events in force.
            sources: where servers are written down, and what was restored of them.
            tell: pushes an event.
            clock: the wall clock.
        """
        self._tell = tell
        self._authority = authority
        self._reloader = reloader
        self._sources = sources
        self._clock = clock
        self.changing = anyio.Lock()
        """Held while pins change."""
        self._tasks: TaskGroup | None = None
        self.router = sources.restored.router
        self.router.on_doubt = self._doubt
        self.problems: tuple[Problem, ...] = sources.restored.problems
        """What is wrong with the file of servers; those of before it stay."""
        self.servers: dict[str, UpstreamServer] = {
            one.upstream.name: UpstreamServer(one.upstream, one.known, problem=one.problem)
            for one in sources.restored.servers
        }
        self.events = UpstreamEvents(
            authority, reloader, self.router, self.servers, sources.restored.serve
        )

    @property
    def revision(self) -> int:
        """The revision in force."""
        return self._authority.catalogue.revision

    def is_held_back(self, server: UpstreamServer, pin: Pin) -> bool:
        """Tell whether a tool that is served waits for a person where a caller holds its rival."""
        if pin.status != "trusted" or pin.is_vouched:
            return False
        event = upstream_event(server.name, pin.segment)
        return shares_name(self._authority.catalogue.universe, event)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep a client to each server while this is open."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for server in self.servers.values():
                self._start(server)
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    def _start(self, server: UpstreamServer) -> None:
        async def listed(listing: Listing) -> None:
            await self._listed(server, listing)

        if self._tasks is not None:
            client = self._sources.make_client(server.upstream, listed)
            self.router.connect(server.name, client)
            server.start(client, self._tasks)

    async def ask(self, server: UpstreamServer) -> None:
        """Ask a server for its tools, starting it if need be; what it says is in force then.

        Raises:
            UnavailableError: it does not answer, or is not kept.
        """
        if server.client is None:
            hint = "'remit upstream list' shows those that are"
            message = f"{server.name!r} is not kept"
            raise UnavailableError(message, hint=hint, details={"reason": "stopped"})
        await server.client.refresh()

    async def _listed(self, server: UpstreamServer, listing: Listing) -> None:
        """Hold a list of tools against the pins, and put what follows from it in force."""
        if self.servers.get(server.name) is not server:
            return  # it was taken out or changed meanwhile
        origin = server.upstream.origin
        prints = {tool.name: fingerprint_of(tool, origin) for tool in listing.tools}
        self.router.listed(server.name, prints)  # at once: nothing that differs is called again
        async with self.changing:
            if self.servers.get(server.name) is not server:
                return
            server.left_out, server.left_out_reasons = listing.left_out, listing.reasons
            known = await anyio.to_thread.run_sync(self._compare, server, listing)
            await self._adopt(server, known)

    def _compare(self, server: UpstreamServer, listing: Listing) -> KnownServer:
        """In a thread: a thousand descriptions take a second to scan."""
        known = {one.name: one.known for one in list(self.servers.values())}
        judge = Judge(neighbours_of(server.name, self._authority.catalogue.universe, known))
        return after_listing(server.known, server.upstream, listing, judge, self._clock())

    async def _adopt(self, server: UpstreamServer, known: KnownServer) -> None:
        """Write pins down and put them in force; what cannot be written down is not trusted."""
        before, server.unkept = server.known, ""
        if not server.is_same(known):
            try:
                await self.keep(known)
            except StoreError as error:
                server.unkept = error.message
                known = unwritten(before, known)
        server.known = known
        server.tell_changes(before)
        await self.events.put_in_force([server], CAUSE)

    async def keep(self, known: KnownServer) -> None:
        """Write pins to disk.

        Raises:
            StoreError: they cannot be written.
        """
        try:
            await anyio.to_thread.run_sync(write_pins, self._sources.folder, known)
        except (OSError, ValueError) as error:
            message = f"what is known about {known.name!r} cannot be kept: {error}"
            log.error("upstream_pins_not_kept", upstream=known.name, problem=str(error))  # noqa: TRY400
            raise StoreError(message, hint="make room in the home, then check it again") from error

    async def reload(self, cause: Cause) -> tuple[Problem, ...]:
        """Read the file of servers again and follow it, all or nothing; answers its mistakes."""
        async with self.changing:
            try:
                found = await anyio.to_thread.run_sync(self._sources.read)
            except DefinitionError as error:
                await self._reject(error.problems, cause)
                return error.problems
            self.problems = ()
            await self._follow({one.name: one for one in found}, cause)
        return ()

    async def _reject(self, problems: tuple[Problem, ...], cause: Cause) -> None:
        """Tell that an edit was refused, once; the servers of before it stay."""
        if problems == self.problems:
            return
        self.problems = problems
        revision = self.revision
        errors = [problem.to_json() for problem in problems]
        log.warning("upstreams_rejected", revision=revision, problems=errors)
        await self._reloader.audit.rejected(cause, problems, revision=revision)
        self._tell(REJECTED, bounded({"errors": errors, "revision": revision}, "errors"), DAEMON_ID)

    async def _follow(self, wanted: dict[str, Upstream], cause: Cause) -> None:
        touched: list[UpstreamServer] = []
        for name, server in list(self.servers.items()):
            entry = wanted.get(name)
            if entry == server.upstream:
                continue
            if entry is None or not server.can_become(entry):
                self._end(server)
                touched.append(server)
        new = [one for name, one in wanted.items() if name not in self.servers]
        pins = await anyio.to_thread.run_sync(
            read_pins, self._sources.folder, [one.name for one in new]
        )
        self.problems = pins.problems
        for upstream in new:
            known = pins.known.get(upstream.name) or KnownServer(name=upstream.name)
            server = self.servers[upstream.name] = UpstreamServer(upstream, known)
            touched.append(server)
            table = self._authority.current.table  # what stays as it was goes on without a gap
            self.router.trust(server.name, trusted_in(table, upstream, known))
            self._start(server)
        for name, server in self.servers.items():
            if server.upstream != wanted[name]:
                server.upstream = wanted[name]
                touched.append(server)
                self._doubt(name)  # what is let in and trusted may be more now
        if touched:
            await self.events.put_in_force(_living_last(touched, self.servers), cause)

    def _end(self, server: UpstreamServer) -> None:
        """Stop a server; its tools cannot be called from this moment on."""
        self.servers.pop(server.name, None)
        self.router.disconnect(server.name)
        server.stop()

    def _doubt(self, name: str) -> None:
        """Ask a server that runs for its tools again, soon and not too often."""
        server = self.servers.get(name)
        if server is not None and self._tasks is not None:
            server.refresh_soon(self._tasks)


def _living_last(
    touched: list[UpstreamServer], living: dict[str, UpstreamServer]
) -> list[UpstreamServer]:
    """One for each name: where one took the place of another, the one that lives."""
    found = {one.name: one for one in touched}
    found.update({name: living[name] for name in found if name in living})
    return list(found.values())
