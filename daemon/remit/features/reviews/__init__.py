"""What waits for a yes of the operator: calls, capabilities, cards, tools."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="reviews",
    events=("remit.features.reviews.events",),
    setup="remit.features.reviews.events",
)
