"""Sessions that only narrow."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="sessions",
    events=("remit.features.sessions.events",),
)
