"""Event patterns: which event names a capability covers.

A pattern is an event name, or a prefix that ends in `*` and covers every name that starts with it.
`*` stands nowhere else, so an operator can read a pattern aloud and know what it grants.
"""

import re
from typing import Self

import msgspec

from remit.errors import InvalidPatternError
from remit.model.names import NAME_LIMIT, SEGMENT

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
