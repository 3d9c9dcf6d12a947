"""The last messages of a conversation, as scorers look at them.

One window is shared by all cards of a selection, and what is costly is made once. Of a message that
is too long only its end is looked at: there people say what they want.
"""

import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from remit.awareness.spelling import SILENT, spelled

WINDOW = 5
MAX_MESSAGE = 32_768
"""Characters of one message that are looked at, from its end."""
_APART = 8
"""Empty places between two messages: no phrase reaches over them."""


class Window:
    """The last messages, oldest first; empty ones stay, for they are messages too."""

    def __init__(
        self, messages: Sequence[str], *, last: int = WINDOW, longest: int = MAX_MESSAGE
    ) -> None:
        self.conversation_length = len(messages)
        chosen = messages[-last:] if last > 0 else ()
        self.messages = tuple(message[-longest:] if longest else "" for message in chosen)

    @cached_property
    def lowered(self) -> str:
        """All of it as one text in lower case."""
        return " ".join(self.messages).lower()

    @cached_property
    def words(self) -> "WordIndex":
        """Which words stand where; made in one pass."""
        return WordIndex(self.messages)


class WordIndex:
    """Where each word stands, in all messages together."""

    def __init__(self, messages: Sequence[str]) -> None:
        self.sequence: list[str] = []
        self.places: dict[str, list[int]] = {}
        self.owner: list[int] = []
        """For each place, the message."""
        self.lengths: list[int] = []
        """For each message, how many of its words say something; never 0."""
        self.found: dict[str, Any] = {}
        """What a scorer found of a keyword, for the next card that has it too."""
        for message in messages:
            self._add(spelled(message))

    @cached_property
    def pairs(self) -> dict[str, int]:
        """Two words in a row written as one, and where the last such pair begins."""
        words = self.sequence
        return dict(zip(map(operator.add, words, words[1:]), range(len(words)), strict=False))

    def _add(self, words: list[str]) -> None:
        start = len(self.sequence)
        self.owner += [len(self.lengths)] * (len(words) + _APART)
        self.sequence += words
        self.sequence += [""] * _APART
        places = self.places
        silent = 0
        for at, word in enumerate(words, start):
            if word in places:
                places[word].append(at)
            else:
                places[word] = [at]
            if word in SILENT:
                silent += 1
        self.lengths.append(max(1, len(words) - silent))
