"""upstream:* — the upstream servers whose tools are events: how they are, and asking them anew."""

from typing import Annotated, Any

import msgspec

from remit.errors import RemitError
from remit.features.upstreams.server import UpstreamServer
from remit.features.upstreams.service import Upstreams
from remit.features.upstreams.views import is_visible, may_see, server_view
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import look_up
from remit.model.schema import BODY_BYTES, PAGE_LIMIT, PAGE_MAX, Key, Name, page

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
CHECK_SECONDS = 120.0


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


async def _asked(ctx: Context, server: UpstreamServer) -> dict[str, Any]:
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


def _count(ctx: Context, server: UpstreamServer) -> int:
    """How many tools it lists that the caller may know of."""
    return sum(not pin.gone and may_see(ctx, server, pin) for pin in server.known.tools.values())


def _fits(body: dict[str, Any]) -> bool:
    """Tell whether an answer can be sent with all its tools."""
    return len(msgspec.json.encode(body)) <= BODY_BYTES


def _visible(ctx: Context) -> dict[str, UpstreamServer]:
    servers = ctx.kernel.service(Upstreams).servers
    return {name: one for name, one in servers.items() if is_visible(ctx, one)}


def _named(ctx: Context, name: str) -> UpstreamServer:
    return look_up(name, _visible(ctx), "upstream server", purpose="use")
