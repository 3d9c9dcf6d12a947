"""Delivery: what was published reaches those who asked for it and may see it now.

INVARIANT: every single delivery is checked against the live grant of the one it goes to.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from remit.bus.local import LocalBus
from remit.model.notice import Notice
from remit.model.principal import OPERATOR_ID
from remit.runtime.authority import Authority
from remit.runtime.conversations import PREFIX, Conversations

CHANNEL_EVENT = "message:publish"
LISTEN_EVENT = "message:subscribe"


class Connection(Protocol):
    """One connection of a principal, as a face knows it."""

    @property
    def name(self) -> str:
        """Whose connection it is."""

    def __hash__(self) -> int: ...


class Post(Protocol):
    """How a face carries notices; it never waits."""

    def deliver(self, connection: Any, notice: Notice) -> bool:
        """Send a notice on one connection; False when it is gone or full: nobody gets it."""

    def tell(self, name: str, notice: Notice) -> int:
        """Send a notice on every connection of a principal; answers how many got it."""


class Courier:
    """Carries notices from whoever publishes to whoever may see them."""

    def __init__(self, authority: Authority, clock: Callable[[], float]) -> None:
        self.bus: LocalBus[Connection] = LocalBus()
        self.conversations = Conversations(authority.fleet)
        self.post: Post | None = None
        self._authority = authority
        self._clock = clock

    def publish(self, event: str, data: Any, origin: str) -> int:
        """Tell everybody who asked for an event and may see it; answers how many got it."""
        listeners = self.bus.hearers(event)
        if not listeners:
            return 0
        return self._send(listeners, event, Notice(event, data, origin, self._clock()))

    def publish_on(self, channel: str, data: Any, origin: str) -> int:
        """Tell the members of a channel, and those who listen to all messages; each one once."""
        members = self.bus.on_channel(channel)
        others = self.bus.hearers(CHANNEL_EVENT)
        if members and others:
            present = set(members)
            others = tuple(one for one in others if one not in present)
        if channel.startswith(PREFIX):
            members = self._participants(channel, members)
            others = self._participants(channel, others)
        body = {"channel": channel, "data": data}
        notice = Notice(CHANNEL_EVENT, body, origin, self._clock())
        told = self._send(members, LISTEN_EVENT, notice)
        return told + self._send(others, CHANNEL_EVENT, notice)

    def show(self, notice: Notice) -> None:
        """Tell those who asked for it and may see it: the operator, its origin and those above."""
        fleet = self._authority.fleet
        above = [
            one
            for one in self.bus.hearers(notice.event)
            if one.name == OPERATOR_ID or fleet.is_under(notice.origin, one.name)
        ]
        self._send(above, notice.event, notice)

    def show_holders(self, event: str, data: Any, origin: str, *, of: str) -> int:
        """Tell everybody who asked for an event and may see it, and may use the event `of` too."""
        holders = [one for one in self.bus.hearers(event) if self._may_see(one.name, of)]
        return self._send(holders, event, Notice(event, data, origin, self._clock()))

    def tell(self, agent: str, event: str, data: Any, origin: str) -> int:
        """Tell one agent, on each of its connections, if it may see the event at all."""
        if self.post is None or not self._may_see(agent, event):
            return 0
        return self.post.tell(agent, Notice(event, data, origin, self._clock()))

    def _send(self, listeners: Iterable[Connection], needed: str, notice: Notice) -> int:
        if self.post is None:
            return 0
        deliver, may_see = self.post.deliver, self._may_see
        told = 0
        for listener in listeners:
            if may_see(listener.name, needed) and deliver(listener, notice):
                told += 1
        return told

    def _may_see(self, name: str, event: str) -> bool:
        current, fleet = self._authority.current, self._authority.fleet
        if name == OPERATOR_ID:
            return event in current.everything.events
        return name in fleet and event in fleet.grant(name, current.catalogue).events

    def _participants(
        self, channel: str, listeners: tuple[Connection, ...]
    ) -> tuple[Connection, ...]:
        admits = self.conversations.admits
        return tuple(one for one in listeners if admits(channel, one.name))
