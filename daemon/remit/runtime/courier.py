"""Delivery: what was published reaches those who asked for it and may see it now.

INVARIANT: every single delivery is checked against the live grant of the one it goes to.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from remit.bus.local import LocalBus
from remit.model.notice import Notice
from remit.runtime.authority import Authority

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

    def deliver(self, connection: Any, notice: Notice) -> None:
        """Send a notice on one connection."""

    def tell(self, name: str, notice: Notice) -> int:
        """Send a notice on every connection of a principal; answers how many there are."""


class Courier:
    """Carries notices from whoever publishes to whoever may see them."""

    def __init__(self, authority: Authority, clock: Callable[[], float]) -> None:
        self.bus: LocalBus[Connection] = LocalBus()
        self.post: Post | None = None
        self._authority = authority
        self._clock = clock

    def publish(self, event: str, data: Any, origin: str) -> int:
        """Tell everybody who asked for an event and may see it; answers how many."""
        return self._send(
            self.bus.hearers(event), event, Notice(event, data, origin, self._clock())
        )

    def publish_on(self, channel: str, data: Any, origin: str) -> int:
        """Tell the members of a channel, and those who listen to all messages."""
        body = {"channel": channel, "data": data}
        notice = Notice(CHANNEL_EVENT, body, origin, self._clock())
        members = self.bus.on_channel(channel)
        told = self._send(members, LISTEN_EVENT, notice)
        others = [one for one in self.bus.hearers(CHANNEL_EVENT) if one not in set(members)]
        return told + self._send(others, CHANNEL_EVENT, notice)

    def show(self, notice: Notice) -> None:
        """Tell everybody who asked for this notice's event and may see it."""
        self._send(self.bus.hearers(notice.event), notice.event, notice)

    def tell(self, agent: str, event: str, data: Any, origin: str) -> int:
        """Tell one agent, on each of its connections, if it may see the event at all."""
        if self.post is None or not self._may_see(agent, event):
            return 0
        return self.post.tell(agent, Notice(event, data, origin, self._clock()))

    def _send(self, listeners: Iterable[Connection], needed: str, notice: Notice) -> int:
        if self.post is None:
            return 0
        told = 0
        for listener in listeners:
            if self._may_see(listener.name, needed):
                self.post.deliver(listener, notice)
                told += 1
        return told

    def _may_see(self, name: str, event: str) -> bool:
        principal = self._authority.fleet.principal(name)
        return principal is not None and event in self._authority.grant(principal).events
