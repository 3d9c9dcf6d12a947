"""What an agent should know, just in time: cards, chosen by the conversation, inside a budget."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="cards",
    events=("remit.features.cards.events",),
    setup="remit.features.cards.setup",
)
