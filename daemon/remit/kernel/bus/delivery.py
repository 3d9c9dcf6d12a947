"""Delivery: what was published reaches those who asked for it and may see it now.

INVARIANT: every single delivery is checked against the live grant of the one it goes to.
The outcome of that check may be remembered for as long as nothing it follows from has changed: the
revision in force, any agent (`Fleet.version`), anybody's subscriptions (`LocalBus.remembered`).
What depends on the message itself is never remembered.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from remit.kernel.bus.bus import LocalBus
from remit.kernel.bus.conversations import PREFIX, Conversations
from remit.model.event import STATE, Notice
from remit.model.grant import Grant
from remit.model.principal import DAEMON_ID, OPERATOR_ID
from remit.policy.plan import GrantChange

if TYPE_CHECKING:
    from remit.kernel.authority.revision import Authority

CHANNEL_EVENT = "message:publish"
CHANGED_EVENT = "permission:changed"
LISTEN_EVENT = "message:subscribe"
LISTS_CHANGED = "self/news"
"""What a connection is told that asked for it; see `runtime.own_requests`."""
_REMEMBERED = 65_536
"""So many listeners of all events together are remembered; as much memory as one large event."""


class Connection(Protocol):
    """One connection of a principal, as a face knows it."""

    @property
    def name(self) -> str:
        """Whose connection it is."""

    def __hash__(self) -> int: ...


class Post(Protocol):
    """The side of a face that sends notices; it never waits."""

    def deliver(self, connection: Any, notice: Notice) -> bool:
        """Send a notice on one connection; False when it is gone or full: nobody gets it."""

    def tell(self, name: str, notice: Notice) -> int:
        """Send a notice on every connection of a principal; answers how many got it."""


class Delivery:
    """Carries notices from whoever publishes to whoever may see them."""

    def __init__(self, authority: "Authority", clock: Callable[[], float]) -> None:
        self.bus: LocalBus[Connection] = LocalBus()
        self.conversations = Conversations(authority.fleet)
        self.lists: LocalBus[Connection] = LocalBus()
        """Connections that are told when a list may have changed, each under the name it is of."""
        self.post: Post | None = None
        self.on_change: Callable[[str], None] = lambda _name: None
        """Told whose rights or lists have changed, whether or not it may see the notice of it."""
        self._authority = authority
        self._clock = clock
        self._allowed = self.bus.remembered
        self._fleet = authority.fleet
        self._revision = authority.current
        self._version = self._fleet.version
        self._kept = 0

    def drop(self, connection: Connection) -> None:
        """Forget a connection that is gone."""
        self.bus.drop(connection)
        self.lists.drop(connection)

    def tell_lists(self, connection: Connection, name: str) -> None:
        """Tell a connection from now on when what its owner is listed may have changed."""
        self.lists.subscribe(connection, channels=[name])

    def lists_changed(self, name: str) -> None:
        """Say that what somebody is listed may have changed, whatever it may see."""
        if self.post is not None:
            notice = Notice(LISTS_CHANGED, {}, DAEMON_ID, self._clock())
            for connection in self.lists.on_channel(name):
                self.post.deliver(connection, notice)
        self.on_change(name)

    def all_lists_changed(self) -> None:
        """Say that what anybody is listed may have changed."""
        for name in (OPERATOR_ID, *self._fleet.names()):
            self.lists_changed(name)

    def publish(self, event: str, data: Any, origin: str) -> int:
        """Tell everybody who asked for an event and may see it; answers how many got it."""
        # The cost of every emit: all of this stands here, without a call that could be saved.
        if self._authority.current is not self._revision or self._fleet.version != self._version:
            self._forget()
        try:
            listeners = self._allowed[event]
        except KeyError:
            if event.startswith(STATE):  # who may see it depends on the key: never remembered
                notice = Notice(event, data, origin, self._clock())
                return self._send(self.bus.hearers(event), event, notice)
            listeners = self._remember(event)
        post = self.post
        if not listeners or post is None:
            return 0
        notice = Notice(event, data, origin, self._clock())
        told = len(listeners)
        for listener in listeners:
            if not post.deliver(listener, notice):
                told -= 1
        return told

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

    def tell_changes(self, changes: Mapping[str, GrantChange], *, revision: int) -> int:
        """Tell each agent what it gained and lost; answers how many agents are affected."""
        for name, change in changes.items():
            data = {
                "gained": change.granted,
                "lost": change.revoked,
                "tools_gained": change.tools_granted,
                "tools_lost": change.tools_revoked,
                "limits_changed": change.limits_changed,
                "approval_added": change.approval_added,
                "approval_removed": change.approval_removed,
                "tools_shown": change.tools_shown,
                "tools_hidden": change.tools_hidden,
                "tools_changed": change.tools_changed,
                "exposure_changed": change.exposure_changed,
                "pinned_added": change.pinned_added,
                "pinned_removed": change.pinned_removed,
                "revision": revision,
            }
            self.tell(name, CHANGED_EVENT, data, DAEMON_ID)
            self.lists_changed(name)
        return len(changes)

    def _forget(self) -> None:
        """Grants may have changed: check everybody again."""
        self._allowed.clear()
        self._revision, self._version = self._authority.current, self._fleet.version

    def _remember(self, event: str) -> tuple[Connection, ...]:
        """Check everybody who asked for an event, and note who may see it."""
        asked = self.bus.hearers(event)
        allowed = tuple(one for one in asked if self._may_see(one.name, event))
        if not self._allowed:
            self._kept = 0
        self._kept += 1 + len(allowed)
        if self._kept > _REMEMBERED:  # a flood of names must not become a flood of memory
            self._allowed.clear()
            self._kept = 1 + len(allowed)
        self._allowed[event] = allowed
        return allowed

    def _send(self, listeners: Iterable[Connection], needed: str, notice: Notice) -> int:
        if self.post is None:
            return 0
        deliver, grant_of = self.post.deliver, self._grant_of
        told = 0
        for listener in listeners:
            grant = grant_of(listener.name)
            if needed in grant.events and notice.is_within(grant.limits):
                told += deliver(listener, notice)
        return told

    def _may_see(self, name: str, event: str) -> bool:
        return event in self._grant_of(name).events

    def _grant_of(self, name: str) -> Grant:
        """What somebody holds now; one that does not live holds nothing."""
        current = self._authority.current
        if name == OPERATOR_ID:
            return current.everything
        return self._authority.fleet.grant(name, current.catalogue)

    def _participants(
        self, channel: str, listeners: tuple[Connection, ...]
    ) -> tuple[Connection, ...]:
        admits = self.conversations.admits
        return tuple(one for one in listeners if admits(channel, one.name))
