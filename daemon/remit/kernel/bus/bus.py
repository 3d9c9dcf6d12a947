"""Subscriptions inside one process, matched through a cache."""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import msgspec

from remit.errors import LimitError
from remit.model.names import EventPattern

MAX_SUBSCRIPTIONS = 256
_CACHE_SIZE = 4096

Subscriber = TypeVar("Subscriber", bound=Hashable)


class Subscriptions(msgspec.Struct):
    """The patterns and channels of one subscriber."""

    patterns: dict[str, EventPattern] = {}
    channels: set[str] = set()

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is asked for any more."""
        return not self.patterns and not self.channels


class LocalBus(Generic[Subscriber]):
    """Subscribers by event pattern and by channel."""

    def __init__(self) -> None:
        self._subscriptions: dict[Subscriber, Subscriptions] = {}
        self._channels: dict[str, dict[Subscriber, None]] = {}
        self._matches: dict[str, tuple[Subscriber, ...]] = {}
        self.remembered: dict[str, tuple[Subscriber, ...]] = {}
        """What somebody computed from `hearers`; emptied whenever anybody's subscriptions change.

        Here and not there, so that it never keeps a connection that is gone.
        """

    def subscribe(
        self,
        subscriber: Subscriber,
        *,
        patterns: Iterable[EventPattern] = (),
        channels: Iterable[str] = (),
    ) -> None:
        """Add patterns and channels to what a subscriber hears; all of them, or none.

        Raises:
            LimitError: the subscriber would have more than is allowed.
        """
        present = self._subscriptions.get(subscriber) or Subscriptions({}, set())
        wanted = {**present.patterns, **{str(pattern): pattern for pattern in patterns}}
        named = present.channels.union(channels)
        if len(wanted) + len(named) > MAX_SUBSCRIPTIONS:
            raise LimitError(
                f"a subscriber has at most {MAX_SUBSCRIPTIONS} patterns and channels",
                hint="unsubscribe from some, or use a wider pattern",
                details={"limit": MAX_SUBSCRIPTIONS},
            )
        self._subscriptions[subscriber] = Subscriptions(wanted, named)
        for channel in named:
            self._channels.setdefault(channel, {})[subscriber] = None
        self._forget()

    def unsubscribe(
        self,
        subscriber: Subscriber,
        *,
        patterns: Iterable[EventPattern] = (),
        channels: Iterable[str] = (),
    ) -> None:
        """Take patterns and channels back; what was not subscribed is passed over."""
        present = self._subscriptions.get(subscriber)
        if present is None:
            return
        for pattern in patterns:
            present.patterns.pop(str(pattern), None)
        for channel in channels:
            present.channels.discard(channel)
            self._leave(channel, subscriber)
        if present.is_empty:
            del self._subscriptions[subscriber]
        self._forget()

    def drop(self, subscriber: Subscriber) -> None:
        """Forget a subscriber that is gone."""
        present = self._subscriptions.pop(subscriber, None)
        if present is None:
            return
        for channel in present.channels:
            self._leave(channel, subscriber)
        self._forget()

    def _forget(self) -> None:
        self._matches.clear()
        self.remembered.clear()

    def _leave(self, channel: str, subscriber: Subscriber) -> None:
        members = self._channels.get(channel)
        if members is not None:
            members.pop(subscriber, None)
            if not members:
                del self._channels[channel]

    def subscriptions(self, subscriber: Subscriber) -> Subscriptions:
        """What a subscriber asked for."""
        return self._subscriptions.get(subscriber) or Subscriptions({}, set())

    def on_channel(self, channel: str) -> tuple[Subscriber, ...]:
        """Who listens to a channel, in the order of subscribing."""
        return tuple(self._channels.get(channel, ()))

    def hearers(self, event: str) -> tuple[Subscriber, ...]:
        """Who asked for an event, in the order of subscribing."""
        found = self._matches.get(event)
        return self._match(event) if found is None else found

    def _match(self, event: str) -> tuple[Subscriber, ...]:
        found = tuple(
            subscriber
            for subscriber, asked in self._subscriptions.items()
            if any(pattern.covers(event) for pattern in asked.patterns.values())
        )
        if len(self._matches) >= _CACHE_SIZE:  # a flood of names must not become a flood of memory
            self._matches.clear()
        self._matches[event] = found
        return found
