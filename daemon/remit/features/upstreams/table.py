"""The events of upstream tools among the handlers in force: exactly what is trusted."""

from collections.abc import Callable, Mapping
from typing import Any

from remit.features.upstreams.pins import KnownServer, served_tools
from remit.kernel.authority.handlers import HandlerTable
from remit.model.event import EventSpec
from remit.model.upstream import Upstream, UpstreamTool
from remit.policy.tool_names import upstream_spec

Serve = Callable[[Any, EventSpec, UpstreamTool, str], Any]
"""Makes the handler of a tool with its fingerprint, or takes the one that serves it at present."""


def handlers_of(
    upstream: Upstream, known: KnownServer, serve: Serve, present: Mapping[Any, Any]
) -> dict[str, Any]:
    """The handlers of all tools of a server that are trusted, by event."""
    made = {}
    for event, tool in served_tools(upstream, known).items():
        pin = known.tools[tool.name]
        spec = upstream_spec(upstream, tool, pin.segment, vouched=pin.is_vouched)
        made[str(event)] = serve(present.get(event), spec, tool, pin.fingerprint)
    return made


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
