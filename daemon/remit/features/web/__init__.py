"""Fetching pages without reaching anything private."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="web",
    events=("remit.features.web.events",),
    setup="remit.features.web.events",
)
