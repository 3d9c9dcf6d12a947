"""upstream:* — the upstream servers whose tools are events: how they are, and asking them anew."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
import msgspec

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.errors import RemitError
from remit.features.reviews.desk import ReviewDesk
from remit.features.upstreams.client.client import UpstreamClient
from remit.features.upstreams.client.state import OnListed
from remit.features.upstreams.file import read_upstreams, upstreams_path
from remit.features.upstreams.pins import upstream_obstacle
from remit.features.upstreams.reviews import TOOL_REVIEWS, ToolReviews
from remit.features.upstreams.router import ServerClient, UpstreamRouter, upstream_handler
from remit.features.upstreams.secrets import secret_value
from remit.features.upstreams.server import (
    UpstreamServer,
    UpstreamSources,
    no_servers,
    restore_servers,
)
from remit.features.upstreams.service import Upstreams
from remit.features.upstreams.views import is_visible, may_see, server_view
from remit.kernel.authority.revision import HandlerTable
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import look_up
from remit.kernel.feature import Setup, Startup
from remit.kernel.processes.guard import process_guard
from remit.kernel.reload.full_reload import Difference, Reading, ReloadPart
from remit.kernel.reload.watch import watch_for_ever
from remit.model.principal import Cause
from remit.model.schema import BODY_BYTES, PAGE_LIMIT, PAGE_MAX, Key, Name, page
from remit.model.upstream import Upstream

if TYPE_CHECKING:
    from remit.features.upstreams.server import UpstreamServer

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
CHECK_SECONDS = 120.0
_LOOK_SECONDS = 0.5
Stamp = tuple[int, int, int] | None
"""What tells one content of a file from another: its inode, time and size; None: it is absent."""


@event_handler("upstream:list", capability="upstream_admin", effect="read")
async def list_(
    ctx: Context, upstreams: Upstreams, name: Name = "", limit: Limit = PAGE_LIMIT, after: Key = ""
) -> dict[str, Any]:
    """List the upstream servers of which you may use a tool: how they are, and their tools.

    Args:
        name: only this server.
        limit: how many at the most.
        after: the `next` of the page before.
    """
    seen = _visible(ctx)
    names = sorted(seen) if not name else [_named(ctx, name).name]
    described = page(names, lambda one: server_view(ctx, seen[one]), limit=limit, after=after)
    problems = upstreams.problems if ctx.sees_everything else ()
    described |= {
        "problems": [problem.to_json() for problem in problems],
        "truncated": not _fits(described),
        "revision": ctx.catalogue.revision,
    }
    if described["truncated"]:
        described["items"] = [item | {"tools": []} for item in described["items"]]
    return described


@event_handler(
    "upstream:check",
    capability="upstream_admin",
    wildcard=False,
    open_world=True,
    resource_intensive=True,
    timeout=CHECK_SECONDS,
)
async def check(ctx: Context, name: Name) -> dict[str, Any]:
    """Connect to an upstream server, starting it if need be, and tell what it has and what waits.

    Args:
        name: the server.
    """
    server = _named(ctx, name)
    return await _asked(ctx, server)


@event_handler(
    "upstream:refresh",
    capability="upstream_admin",
    wildcard=False,
    open_world=True,
    resource_intensive=True,
    timeout=CHECK_SECONDS,
)
async def refresh(ctx: Context, name: Name = "") -> dict[str, Any]:
    """Ask the upstream servers that run for their tools again; one that does not run stays so.

    Args:
        name: only this server.
    """
    servers = [_named(ctx, name)] if name else list(_visible(ctx).values())
    running = [one for one in servers if one.health.state == "ready"]
    answers = [await _asked(ctx, one) for one in running]
    return {
        "items": answers,
        "total": len(answers),
        "revision": ctx.kernel.authority.catalogue.revision,
    }


async def _asked(ctx: Context, server: "UpstreamServer") -> dict[str, Any]:
    """Ask a server for its tools; one that does not answer is told, not raised."""
    error = ""
    try:
        await ctx.kernel.service(Upstreams).ask(server)
    except RemitError as failed:
        error = failed.message
    pins = server.known.tools
    found = {
        "ok": not error,
        "error": error,
        "found": _count(ctx, server) if not error else 0,
        "waiting": sorted(
            f"tool:{server.name}/{name}" for name, pin in pins.items() if pin.status == "pending"
        )
        if ctx.sees_everything
        else [],
    }
    body = server_view(ctx, server) | found
    body |= {"truncated": False, "revision": ctx.kernel.authority.catalogue.revision}
    return body if _fits(body) else body | {"tools": [], "truncated": True}


def _count(ctx: Context, server: "UpstreamServer") -> int:
    """How many tools it lists that the caller may know of."""
    return sum(not pin.gone and may_see(ctx, server, pin) for pin in server.known.tools.values())


def _fits(body: dict[str, Any]) -> bool:
    """Tell whether an answer can be sent with all its tools."""
    return len(msgspec.json.encode(body)) <= BODY_BYTES


def _visible(ctx: Context) -> dict[str, "UpstreamServer"]:
    servers = ctx.kernel.service(Upstreams).servers
    return {name: one for name, one in servers.items() if is_visible(ctx, one)}


def _named(ctx: Context, name: str) -> "UpstreamServer":
    return look_up(name, _visible(ctx), "upstream server", purpose="use")


async def configured_servers(settings: Settings, table: HandlerTable) -> UpstreamSources:
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


async def _restore(startup: Startup) -> None:
    sources = await configured_servers(startup.settings, startup.table)
    startup.put(sources)
    startup.table = sources.restored.table


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
