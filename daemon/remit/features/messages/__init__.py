"""Channels, mail, conversations and subscriptions."""
