"""Channels, mail, conversations and subscriptions."""

from remit.kernel.feature import Feature

FEATURE = Feature(
    name="messages",
    events=("remit.features.messages.events",),
    setup="remit.features.messages.mailbox",
)
