"""Outside servers and their tools as callers are shown them."""

from typing import TYPE_CHECKING, Any

from remit.config.upstream_pins import Pin
from remit.policy.outside_names import effect_of, is_let_in, outside_event, stated_effect
from remit.runtime.context import Context
from remit.runtime.outside_diff import seen, tool_diff
from remit.runtime.outside_pinning import shown_of

if TYPE_CHECKING:
    from remit.runtime.upstream_server import UpstreamServer

MARK = 12
_LEFT_OUT = 20
_STATUS = {"trusted": "approved", "pending": "pending", "rejected": "rejected"}


def is_visible(ctx: Context, server: "UpstreamServer") -> bool:
    """Tell whether the caller may know of a server: it may use a tool of it, or sees everything."""
    return ctx.sees_everything or any(_own_events(ctx, server))


def _own_events(ctx: Context, server: "UpstreamServer") -> list[str]:
    prefix = f"{server.upstream.source}:"
    return [event for event in ctx.grant.events if event.startswith(prefix)]


def server_view(ctx: Context, server: "UpstreamServer") -> dict[str, Any]:
    """How a server is, and the tools of it that the caller may know of."""
    health, known = server.health, server.known
    shown: dict[str, Any] = {
        "name": server.name,
        "state": health.state,
        "reason": health.reason,
        "since": health.since or None,
        "protocol": health.protocol or known.protocol,
        "restarts": health.restarts,
        "calls": health.calls,
        "failures": health.failures,
        "latency": health.latency,
        "tools": [
            tool_view(ctx, server, name, pin)
            for name, pin in sorted(known.tools.items())
            if is_let_in(server.upstream, name) and may_see(ctx, server, pin)
        ],
    }
    if ctx.sees_everything:
        shown |= {
            "server": dict(known.server_info),
            "trust": server.upstream.trust,
            "start": server.upstream.start,
            "listed_at": known.listed_at or None,
            "pending": sum(pin.status == "pending" for pin in known.tools.values()),
            "left_out": server.left_out,
            "left_out_because": [
                {"tool": seen(one.name), "reason": seen(one.reason)}
                for one in server.left_out_reasons[:_LEFT_OUT]
            ],
            "last_error": health.last_error,
            "problem": server.problem or server.unkept,
        }
    return shown


def may_see(ctx: Context, server: "UpstreamServer", pin: Pin) -> bool:
    """Tell whether the caller may know of a tool: it may use it, or sees everything."""
    return ctx.sees_everything or outside_event(server.name, pin.segment) in ctx.grant.events


def tool_view(ctx: Context, server: "UpstreamServer", name: str, pin: Pin) -> dict[str, Any]:
    """One tool: its event, whether it is served, and why not."""
    event = outside_event(server.name, pin.segment)
    served = pin.tool or pin.pending
    return {
        "tool": seen(name),
        "event": event,
        "status": "gone" if pin.gone else pin.status,
        "effect": effect_of(server.upstream, served) if served else None,
        "served": event in ctx.services.authority.catalogue.universe.index,
        "reason": pin.reason if ctx.sees_everything else "",
    }


def review_view(server: "UpstreamServer", name: str, pin: Pin) -> dict[str, Any]:
    """One tool as a review shows it: everything that a yes would be a yes to."""
    tool, mark = shown_of(pin)
    before = pin.tool if pin.status != "trusted" else None
    upstream = server.upstream
    changes = tool_diff(before, tool)
    if before is not None and pin.origin != server.known.origin:
        old, new = _origin(pin.origin), _origin(server.known.origin)
        changes.insert(0, {"field": "origin", "old": old, "new": new})
    return {
        "id": f"tool:{server.name}/{name}",
        "kind": "tool",
        "status": _STATUS[pin.status],
        "upstream": server.name,
        "tool": seen(name),
        "event": outside_event(server.name, pin.segment),
        "fingerprint": mark,
        "is_new": before is None,
        "gone": pin.gone,
        "effect": effect_of(upstream, tool) if tool else None,
        "effect_known": tool is not None and stated_effect(upstream, tool) is not None,
        "reasons": [one for one in pin.reason.split("; ") if one],
        "diff": changes,
        "decided_by": "" if pin.status == "pending" else pin.decided_by,
        "decided_at": None if pin.status == "pending" else pin.decided_at or None,
        "note": "" if pin.status == "pending" else pin.note,
    }


def _origin(origin: str) -> str:
    return seen(origin.replace("\x00", " "))
