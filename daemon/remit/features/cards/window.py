"""The words of a conversation: what stands where in the last messages.

Chinese, Japanese, Korean and the scripts of South-East Asia write no borders between words: each of
their signs is a word here, and a keyword is a run of them. Arabic loses its short vowels and the
commonest particles (Larkey's light10), English its commonest endings.
"""

import operator
import re
import unicodedata
from collections import deque
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from remit.text.words import FILLER, stem, stems

_UNSPACED = (
    "\u0e01-\u0e5b\u0e81-\u0edf\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0002fa1f"
)
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0980-\u0dff"
)
WORD = re.compile(
    rf"[{_UNSPACED}]"
    r"|[a-z](?:\+\+|#(?!\w))"  # c++ and c# are words
    rf"|(?:(?![{_UNSPACED}_])\w)(?:(?![{_UNSPACED}_])[\w{_MARKS}])*"
)
_PLAIN_WORD = re.compile(r"[a-z](?:\+\+|#(?!\w))|[a-z0-9]+")
"""The same for text that is all ASCII, which is most text, and faster."""
IS_UNSPACED = re.compile(f"[{_UNSPACED}]")

_ARABIC = re.compile("[\u0621-\u064a\ufb50-\ufefc]")
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u0652\u0670]")
_ALIKE = str.maketrans("أإآٱىة", "اااايه")
_PREFIXES = ("وال", "بال", "كال", "فال", "لل", "ال", "و")
_SUFFIXES = ("ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي")  # noqa: RUF001
_FOREIGN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]{1,100}")
"""Normalised piece by piece: a long run of combining marks takes time with its square."""
_GROWN = 300
"""Characters that a piece may become; a few signs become eighteen each."""
_LONG = 40
"""Letters: longer ones are no words, and must not fill the memory of those that are."""
_ROOT = 3
"""Letters that are left of an Arabic word at the least."""

SILENT = frozenset(map(stem, FILLER)) | FILLER
"""Words that say nothing about what a message is about."""
WINDOW = 5
MAX_MESSAGE = 32_768
"""Characters of one message that are looked at, from its end."""
_APART = 8
"""Empty places between two messages: no phrase reaches over them."""
NAME = re.compile(
    r"(?<![a-z0-9_:/])([a-z][a-z0-9]*+[:_/])[a-z0-9][a-z0-9.-]*+(?:[:_/][a-z0-9][a-z0-9.-]*+)*"
)
"""A name as programs write it, and in its group what it begins with, as in `state:`."""
_MOST_NAMES = 1_000
"""Names of one message that are looked at, from its end."""


class Window:
    """The last messages, oldest first; empty ones stay, for they are messages too.

    One window is shared by all cards of a selection, and what is costly is made once. Of a message
    that is too long only its end is looked at: there people say what they want.
    """

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
        self._messages = messages
        for message in messages:
            self._add(spelled(message))

    @cached_property
    def names(self) -> dict[str, int]:
        """Names as programs write them, and what they begin with, and the last message with one."""
        found: dict[str, int] = {}
        for at, message in enumerate(self._messages):
            for name in deque(NAME.finditer(message.lower()), maxlen=_MOST_NAMES):
                found[name[0].rstrip(".-")] = at
                found[name[1]] = at
        return found

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


def spelled(text: str) -> list[str]:
    """The words of a text, lowered and without endings, in order, nothing left out."""
    if text.isascii():
        return stems(_PLAIN_WORD.findall(text.lower()))
    found = WORD.findall(_FOREIGN.sub(_normal, text).lower())
    if not _ARABIC.search(text):
        return stems(found)
    return [_arabic(word) if _ARABIC.match(word) else stem(word) for word in found]


def _normal(run: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", run.group())[:_GROWN]


def _arabic(word: str) -> str:
    return word if len(word) > _LONG else _light(word)


@lru_cache(maxsize=16_384)
def _light(word: str) -> str:
    word = _ARABIC_MARKS.sub("", word).translate(_ALIKE)
    for prefix in _PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= _ROOT:
            word = word[len(prefix) :]
            break
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _ROOT:
            word = word[: -len(suffix)]
    return word
