"""Event names, checked once where they enter."""

import re
from typing import NewType, Self

import msgspec

from remit.errors import InvalidNameError, InvalidPatternError

EventName = NewType("EventName", str)

SEGMENT = r"[a-z0-9][a-z0-9_.-]*"
_NAME = re.compile(rf"[a-z][a-z0-9_]*(:{SEGMENT})+")

NAME_LIMIT = 200


def parse_event_name(text: str) -> EventName:
    """Accept `text` as an event name.

    Raises:
        InvalidNameError: `text` is not two or more lowercase segments joined by colons.
    """
    if len(text) > NAME_LIMIT or not _NAME.fullmatch(text):
        raise InvalidNameError(text)
    return EventName(text)


# Event patterns: which event names a capability covers.
#
# A pattern is an event name, or a prefix that ends in `*` and covers every name that starts with
# it. `*` stands nowhere else, so an operator can read a pattern aloud and know what it grants.


_PATTERN = re.compile(rf"\*|[a-z][a-z0-9_]*(:{SEGMENT})*:({SEGMENT}|({SEGMENT})?\*)")


class EventPattern(msgspec.Struct, frozen=True):
    """A pattern that has been parsed; `EventPattern.parse` is the way to get one."""

    prefix: str
    exact: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pattern as operators write it.

        Raises:
            InvalidPatternError: `text` is neither an event name nor a prefix that ends in `*`.
        """
        if len(text) > NAME_LIMIT or not _PATTERN.fullmatch(text):
            raise InvalidPatternError(text)
        return cls(prefix=text.removesuffix("*"), exact=not text.endswith("*"))

    @property
    def is_everything(self) -> bool:
        """Tell whether this is the bare `*`."""
        return not self.exact and not self.prefix

    def covers(self, name: str) -> bool:
        """Tell whether this pattern covers `name`."""
        return name == self.prefix if self.exact else name.startswith(self.prefix)

    def overlap(self, other: "EventPattern") -> "EventPattern | None":
        """The pattern of the names that both cover; None when there can be no such name."""
        wide, narrow = sorted((self, other), key=lambda p: (len(p.prefix), p.exact))
        return narrow if wide.covers(narrow.prefix) else None

    def __str__(self) -> str:
        return self.prefix if self.exact else f"{self.prefix}*"
