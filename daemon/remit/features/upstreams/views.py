"""Upstream servers and their tools as callers are shown them, and what a review shows of a tool.

A review tells what has changed in a definition, field by field, for a person to read.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from remit.features.upstreams.pins import Pin
from remit.features.upstreams.trust import shown_of
from remit.kernel.dispatch.context import Context
from remit.model.upstream import UpstreamTool
from remit.policy.upstream_tools import effect_of, is_let_in, stated_effect, upstream_event
from remit.text.unicode import unseen_spans

if TYPE_CHECKING:
    from remit.features.upstreams.server import UpstreamServer


MAX_CHANGES = 40
MAX_TEXT = 1_000
_MOST_PARTS = 200_000
"""More than a definition can have."""
_FIELDS = ("title", "description", "input_schema", "output_schema", "annotations")
_USUAL: tuple[tuple[str, Any], ...] = (
    ("title", ""),
    ("description", ""),
    ("input_schema", {}),
    ("output_schema", None),
    ("annotations", {}),
)
_PLAIN = re.compile(r"[\w$-]+")
_BEFORE = 100
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
    return ctx.sees_everything or upstream_event(server.name, pin.segment) in ctx.grant.events


def tool_view(ctx: Context, server: "UpstreamServer", name: str, pin: Pin) -> dict[str, Any]:
    """One tool: its event, whether it is served, and why not."""
    event = upstream_event(server.name, pin.segment)
    served = pin.tool or pin.pending
    return {
        "tool": seen(name),
        "event": event,
        "status": "gone" if pin.gone else pin.status,
        "effect": effect_of(server.upstream, served) if served else None,
        "served": event in ctx.kernel.authority.catalogue.universe.index,
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
        "event": upstream_event(server.name, pin.segment),
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


def tool_diff(before: UpstreamTool | None, after: UpstreamTool | None) -> list[dict[str, Any]]:
    """Each field that is not the same, with what it was and what it is; bounded.

    Without `before` everything that the tool says is told. What is not there is None.
    """
    if after is None:
        return []
    old = dict(_parts(before)) if before is not None else {}
    new = dict(_parts(after))
    changes = [
        _change(path, _text(old, path), _text(new, path))
        for path in [*old, *(path for path in new if path not in old)]
        if _written_out(old, path) != _written_out(new, path)
    ]
    left = len(changes) - MAX_CHANGES
    more = [{"field": "…", "old": None, "new": f"{left} more"}] if left > 0 else []
    return [*changes[:MAX_CHANGES], *more]


def _parts(tool: UpstreamTool) -> Iterator[tuple[str, Any]]:
    """Every value of a definition with its path, in the order in which it stands there."""
    waiting = [(name, getattr(tool, name)) for name in reversed(_FIELDS)]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        path, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += [(f"{path}{_step(key)}", one) for key, one in reversed(value.items())]
        elif isinstance(value, list) and value and not _is_flat(value):
            waiting += [(f"{path}[{at}]", one) for at, one in reversed(list(enumerate(value)))]
        elif (path, value) not in _USUAL:
            yield path, value
    yield "…", f"{len(waiting)} parts more"


def _step(key: str) -> str:
    """A key in a path; two different ways never make the same path, or one could hide another."""
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{msgspec.json.encode(key).decode()}]"


def _is_flat(value: list[Any]) -> bool:
    return not any(isinstance(one, dict | list) for one in value)


def _written_out(parts: dict[str, Any], path: str) -> bytes:
    """A value as JSON: 1, 1.0 and true are not the same there."""
    return msgspec.json.encode(parts[path]) if path in parts else b""


def _text(parts: dict[str, Any], path: str) -> str | None:
    if path not in parts:
        return None
    value = parts[path]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _change(path: str, old: str | None, new: str | None) -> dict[str, Any]:
    """Both sides from shortly before where they part, if that is too far on to be shown else."""
    at = 0
    if old is not None and new is not None and max(len(old), len(new)) > MAX_TEXT:
        pairs = enumerate(zip(old, new, strict=False))
        at = max(0, next((n for n, (a, b) in pairs if a != b), min(len(old), len(new))) - _BEFORE)
    return {"field": seen(path), "old": _told(old, at), "new": _told(new, at)}


def _told(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    return f"…{seen(text[start:])}" if start else seen(text)


def seen(text: str) -> str:
    """A text in which everything can be seen: what has no shape of its own is written out."""
    cut = text[:MAX_TEXT]
    if not (cut.isascii() and cut.isprintable()):
        unseen = {at for start, end, _, _ in unseen_spans(cut) for at in range(start, end)}
        cut = "".join(
            char if char == "\n" or (char.isprintable() and at not in unseen) else _written(char)
            for at, char in enumerate(cut)
        )
    return f"{cut}… ({len(text):,} characters)" if len(text) > MAX_TEXT else cut


def _written(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004
