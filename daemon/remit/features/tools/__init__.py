"""Lists of tools: for hosts, for help, in the formats of model vendors."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="tools",
    events=("remit.features.tools.events",),
)
