"""Conversations: channels that only their participants use.

They live in memory and end with the daemon. Nobody closes them, so each creator keeps the ones it
opened last, and those whose people are all gone make room first.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from remit.errors import LimitError, NotFoundError
from remit.model.principal import OPERATOR_ID

if TYPE_CHECKING:
    from remit.kernel.authority.fleet import Fleet

PREFIX = "conversation/"
"""Every channel below belongs to a conversation, or to nobody."""
MAX_CONVERSATIONS = 10_000
MAX_BY_CREATOR = 100


class Conversation(msgspec.Struct, frozen=True, eq=False):
    """A channel, who may use it, and who opened it."""

    id: str
    name: str
    channel: str
    creator: str
    participants: dict[str, int | None]
    """Each with its serial: a later agent of the same name, even with its key, has no part."""
    created_at: float


class Conversations:
    """All conversations, oldest first."""

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet
        self._by_channel: dict[str, Conversation] = {}

    def __len__(self) -> int:
        return len(self._by_channel)

    def open(
        self, creator: str, participants: Iterable[str], *, name: str, at: float
    ) -> Conversation:
        """Open a conversation; the oldest of its creator ends when it has too many.

        Raises:
            LimitError: the daemon has no room for another one.
        """
        self._make_room(creator)
        made = Conversation(
            id=os.urandom(8).hex(),
            name=name,
            channel=PREFIX + os.urandom(16).hex(),
            creator=creator,
            participants={one: self._serial(one) for one in (creator, *participants)},
            created_at=at,
        )
        self._by_channel[made.channel] = made
        return made

    def of(self, agent: str) -> list[Conversation]:
        """The conversations that an agent takes part in, by their id."""
        found = [each for each in self._by_channel.values() if self._takes_part(agent, each)]
        return sorted(found, key=lambda each: each.id)

    def admits(self, channel: str, agent: str) -> bool:
        """Tell whether a channel is no conversation's, or one that an agent takes part in.

        The operator may use all of them.
        """
        if not channel.startswith(PREFIX):
            return True
        found = self._by_channel.get(channel)
        return found is not None and (agent == OPERATOR_ID or self._takes_part(agent, found))

    def check(self, channel: str, agent: str) -> None:
        """Let only participants pass.

        Raises:
            NotFoundError: the channel is another's; the same as if there were none.
        """
        if not self.admits(channel, agent):
            raise NotFoundError(
                f"there is no conversation on channel {channel!r} that you take part in",
                hint=f"choose a channel that does not start with {PREFIX!r}",
            )

    def _takes_part(self, agent: str, conversation: Conversation) -> bool:
        serial = conversation.participants.get(agent)
        return serial is not None and serial == self._serial(agent)

    def _serial(self, agent: str) -> int | None:
        found = self._fleet.principal(agent)
        return None if found is None else found.serial

    def _make_room(self, creator: str) -> None:
        own = [each.channel for each in self._by_channel.values() if each.creator == creator]
        if len(own) >= MAX_BY_CREATOR:
            del self._by_channel[own[0]]
        if len(self._by_channel) >= MAX_CONVERSATIONS:
            self._by_channel = {
                channel: each
                for channel, each in self._by_channel.items()
                if any(self._takes_part(one, each) for one in each.participants)
            }
        if len(self._by_channel) >= MAX_CONVERSATIONS:
            raise LimitError(
                f"there are {MAX_CONVERSATIONS:,} conversations already",
                hint="use a channel of your own instead",
                details={"limit": MAX_CONVERSATIONS},
            )
