"""Small built-in tools: time, arithmetic, weather for tests, a list of tasks."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="builtins",
    events=("remit.features.builtins.events",),
)
