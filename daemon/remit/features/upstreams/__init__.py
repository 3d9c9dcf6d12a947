"""Upstream MCP servers: which there are, what is trusted of them, how they are called."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="upstreams",
    events=("remit.features.upstreams.events",),
    setup="remit.features.upstreams.setup",
)
