"""Agents: spawned, changed, ended; their keys, tokens, prompts and processes."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="agents",
    events=(
        "remit.features.agents.events",
        "remit.features.agents.runtime",
        "remit.features.agents.views",
        "remit.features.agents.keys",
    ),
    setup="remit.features.agents.setup",
)
