"""Upstream servers as the files tell them, in the shape in which a daemon tells them."""

from typing import Any

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.features.upstreams.file import inspect_upstreams, upstreams_path
from remit.features.upstreams.pins import KnownServer, Pin, Pins, read_pins
from remit.model.upstream import Upstream
from remit.policy.tool_names import effect_of, is_let_in, upstream_event, visible

OFFLINE = "offline"
"""The state of a server that nobody has asked."""
_NAME = 128


def pins_of(settings: Settings, upstreams: tuple[Upstream, ...]) -> Pins:
    """What is kept about servers."""
    return read_pins(Home(settings.home).upstreams, [one.name for one in upstreams])


def describe_servers(settings: Settings) -> dict[str, Any]:
    """Every server of the file, with what was known about it when a daemon last looked."""
    found = inspect_upstreams(upstreams_path(settings))
    upstreams = () if found.errors else found.upstreams
    pins = pins_of(settings, upstreams)
    items = [
        server_view(one, pins.known.get(one.name) or KnownServer(name=one.name))
        for one in sorted(upstreams, key=lambda one: one.name)
    ]
    problems = [*found.problems, *pins.problems]
    return {
        "items": items,
        "total": len(items),
        "next": None,
        "problems": [problem.to_json() for problem in problems],
        "revision": None,
    }


def server_view(upstream: Upstream, known: KnownServer, state: str = OFFLINE) -> dict[str, Any]:
    """One server."""
    let_in = {name: pin for name, pin in sorted(known.tools.items()) if is_let_in(upstream, name)}
    return {
        "name": upstream.name,
        "state": state,
        "reason": "",
        "protocol": known.protocol,
        "server": dict(known.server_info),
        "trust": upstream.trust,
        "start": upstream.start,
        "listed_at": known.listed_at or None,
        "pending": sum(pin.status == "pending" for pin in let_in.values()),
        "tools": [_tool_view(upstream, name, pin) for name, pin in let_in.items()],
    }


def _tool_view(upstream: Upstream, name: str, pin: Pin) -> dict[str, Any]:
    shown = pin.tool or pin.pending
    return {
        "tool": visible(name, _NAME),
        "event": upstream_event(upstream.name, pin.segment),
        "status": "gone" if pin.gone else pin.status,
        "effect": effect_of(upstream, shown) if shown else None,
        "served": pin.is_served(upstream.origin),
        "reason": pin.reason,
    }
