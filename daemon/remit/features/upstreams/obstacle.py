"""Why a tool of an upstream server is no event now: in quarantine, rejected, gone, kept out."""

from collections.abc import Mapping

from remit.features.upstreams.pins import KnownServer, Pin
from remit.model.names import did_you_mean
from remit.model.upstream import Upstream
from remit.policy.queries import Obstacle
from remit.policy.tool_names import is_let_in, server_of, upstream_event

Servers = Mapping[str, tuple[Upstream, KnownServer | None]]
"""Each server that is written down, with what is known about it."""


def upstream_obstacle(servers: Servers, event: str) -> Obstacle | None:
    """What keeps an upstream tool from being called; None for what is no name of one."""
    name = server_of(event)
    if not name:
        return None
    if name not in servers:
        hint = did_you_mean(name, servers) or "remit upstream list"
        return Obstacle("unknown_server", f"there is no upstream server {name!r}", hint)
    upstream, known = servers[name]
    pins = {} if known is None else known.tools
    for tool, pin in pins.items():
        if upstream_event(name, pin.segment) == event:
            return _of_tool(upstream, tool, pin)
    message = f"the upstream server {name!r} offers no such tool"
    if known is None or not known.listed_at:
        message = f"nobody has asked the upstream server {name!r} for its tools yet"
    return Obstacle("not_offered", message, f"remit upstream check {name}")


def _of_tool(upstream: Upstream, tool: str, pin: Pin) -> Obstacle:
    named = f"the tool {tool!r} of {upstream.name!r}"
    review = f"remit review approve 'tool:{upstream.name}/{tool}'"
    if not is_let_in(upstream, tool):
        hint = "change 'allow' or 'deny' there"
        return Obstacle("kept_out", f"{named} is kept out by upstreams.yaml", hint)
    if pin.gone:
        message = f"{named} is not offered any more"
        return Obstacle("gone", message, f"remit upstream check {upstream.name}")
    if pin.status == "rejected":
        return Obstacle("rejected", f"{named} was rejected by an operator", review)
    why = f": {pin.reason}" if pin.reason else ""
    hint = f"look at it with: remit review list --kind tool; then {review}"
    return Obstacle("quarantine", f"{named} is in quarantine{why}", hint)
