"""Upstream servers as the files tell them, for commands without a daemon: no server is started.

What is trusted comes from what is kept of each server. A file of servers that cannot be read has no
events here; `remit check` says what is wrong with it.
"""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.errors import Problem
from remit.features.upstreams.file import inspect_upstreams, upstreams_path
from remit.features.upstreams.pins import (
    KnownServer,
    Pin,
    Pins,
    read_pins,
    served_tools,
    upstream_obstacle,
)
from remit.model.event import EventSpec
from remit.model.upstream import Upstream
from remit.policy.queries import Obstacle
from remit.policy.upstream_tools import effect_of, is_let_in, upstream_event, upstream_spec, visible

OFFLINE = "offline"
"""The state of a server that nobody has asked."""
_NAME = 128


class OfflineUpstreams:
    """The servers that are written down, and what is kept of each."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.file = inspect_upstreams(upstreams_path(settings))

    @cached_property
    def pins(self) -> Pins:
        """What is kept of the servers of the file."""
        return pins_of(self._settings, self.file.upstreams)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the file, and with what is kept of its servers."""
        return (*self.file.problems, *(self.pins.problems if self.file.upstreams else ()))

    def specs(self) -> list[EventSpec]:
        """The event of each trusted tool."""
        return [
            upstream_spec(
                one, tool, known.tools[tool.name].segment, vouched=known.tools[tool.name].is_vouched
            )
            for one, known in self._trusted()
            for tool in served_tools(one, known).values()
        ]

    def handlers(self) -> dict[str, Any]:
        """A handler for each trusted tool, by event; there is no server behind it."""
        from remit.features.upstreams.router import (  # noqa: PLC0415 - a daemon's handlers
            UpstreamRouter,
            handlers_of,
            upstream_handler,
        )

        serve, found = partial(upstream_handler, UpstreamRouter()), dict[str, Any]()
        for one, known in self._trusted():
            found |= handlers_of(one, known, serve, {})
        return found

    def obstacle(self, event: str) -> Obstacle | None:
        """Why a tool of a server is no event now; None for what is no name of one."""
        servers = {one.name: (one, self.pins.known.get(one.name)) for one in self.file.upstreams}
        return upstream_obstacle(servers, event)

    def _trusted(self) -> Iterator[tuple[Upstream, KnownServer]]:
        if not self.file.errors:
            known = self.pins.known
            yield from ((one, known[one.name]) for one in self.file.upstreams if one.name in known)


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
