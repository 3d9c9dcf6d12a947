"""The shared state."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="state",
    events=("remit.features.state.events",),
    setup="remit.features.state.events",
)
