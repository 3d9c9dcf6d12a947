"""Events that come and go at run time."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="extensions",
    events=("remit.features.extensions.events",),
    setup="remit.features.extensions.events",
    requires=("discovery",),
)
