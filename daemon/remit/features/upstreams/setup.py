"""Upstream servers in a daemon: restored at its start, kept while it runs, their file followed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.features.reviews.desk import ReviewDesk
from remit.features.upstreams.client.client import UpstreamClient
from remit.features.upstreams.client.state import OnListed
from remit.features.upstreams.file import read_upstreams, upstreams_path
from remit.features.upstreams.pins import upstream_obstacle
from remit.features.upstreams.reviews import TOOL_REVIEWS, ToolReviews
from remit.features.upstreams.router import ServerClient, UpstreamRouter, upstream_handler
from remit.features.upstreams.secrets import secret_value
from remit.features.upstreams.server import UpstreamSources, no_servers, restore_servers
from remit.features.upstreams.service import Upstreams
from remit.kernel.authority.revision import HandlerTable
from remit.kernel.dispatch.context import Kernel
from remit.kernel.feature import Setup, Startup
from remit.kernel.processes.guard import process_guard
from remit.kernel.reload.full_reload import Difference, Reading, ReloadPart
from remit.kernel.reload.watch import watch_for_ever
from remit.model.principal import Cause
from remit.model.upstream import Upstream

_LOOK_SECONDS = 0.5
Stamp = tuple[int, int, int] | None
"""What tells one content of a file from another: its inode, time and size; None: it is absent."""


async def _restore(startup: Startup) -> None:
    sources = await _sources(startup.settings, startup.table)
    startup.put(sources)
    startup.table = sources.restored.table


async def _sources(settings: Settings, table: HandlerTable) -> UpstreamSources:
    """Upstream servers as the settings want them; what was trusted is in the table again."""
    home, path = Home(settings.home), upstreams_path(settings)
    guard = process_guard(str(home.path.resolve()))

    def make_client(upstream: Upstream, on_listed: OnListed) -> ServerClient:
        return UpstreamClient(upstream, secret=secret_value, on_listed=on_listed, guard=guard)

    def read() -> tuple[Upstream, ...]:
        return read_upstreams(path)

    router = UpstreamRouter()
    serve = partial(upstream_handler, router)
    restored = await restore_servers(table, read, home.upstreams, router, serve)
    return UpstreamSources(read, home.upstreams, make_client, restored)


def _build(kernel: Kernel, startup: Startup) -> None:
    sources = startup.take(UpstreamSources, lambda: no_servers(startup.table))
    upstreams = Upstreams(
        kernel.authority,
        kernel.reloader,
        sources,
        tell=kernel.delivery.publish,
        clock=kernel.wall_clock,
    )
    kernel.unavailable = upstreams.router.unavailable
    kernel.obstacle = lambda event: upstream_obstacle(
        {name: (one.upstream, one.known) for name, one in upstreams.servers.items()}, event
    )
    kernel.reload_parts.append(ReloadPart("upstreams", lambda: _reload(upstreams), is_strict=True))
    kernel.provide(upstreams, ToolReviews(upstreams, kernel.audit_log, clock=kernel.wall_clock))
    if desk := kernel.find(ReviewDesk):
        desk.register(TOOL_REVIEWS)


def _reload(upstreams: Upstreams) -> Reading:
    async def read(cause: Cause) -> Difference:
        servers = upstreams.servers
        before = {name: server.upstream for name, server in servers.items()}
        problems = await upstreams.reload(cause)
        after = {name: server.upstream for name, server in servers.items()}
        return Difference.between(before, after, problems)

    return read


@asynccontextmanager
async def _run(kernel: Kernel, settings: Settings) -> AsyncGenerator[None]:
    """Keep a client to each server while this is open, and follow the file of servers."""
    upstreams, path = kernel.service(Upstreams), upstreams_path(settings)
    async with upstreams.running(), anyio.create_task_group() as tasks:
        if settings.watch:
            rest = settings.watch_debounce_ms / 1000
            follow = partial(_follow, path, upstreams, rest)
            tasks.start_soon(watch_for_ever, follow, "upstream_watch_failed")
        yield
        tasks.cancel_scope.cancel()


async def _follow(path: Path, upstreams: Upstreams, rest: float) -> None:
    """Take up edits of the file of servers once they have come to rest; runs for ever.

    It is looked at from time to time: beside it, in the home, the store is written all the time.
    """
    taken = _stamp(path)
    while True:
        await anyio.sleep(_LOOK_SECONDS)
        seen = _stamp(path)
        if seen == taken:
            continue
        await anyio.sleep(rest)
        if _stamp(path) == seen:
            taken = seen
            await upstreams.reload(Cause("files_edited"))


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


SETUP = Setup(restore=_restore, build=_build, run=_run)
