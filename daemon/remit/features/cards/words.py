"""The words of a conversation, and the default scorer: whole words with inflections, and phrases.

Chinese, Japanese, Korean and the scripts of South-East Asia write no borders between words: each of
their signs is a word here, and a keyword is a run of them. Arabic loses its short vowels and the
commonest particles (Larkey's light10), English its commonest endings.

    strength = sum over the keywords found of  weight * repeats * recency
    value    = 1 - 2 ** -(strength * focus)

A word weighs 1, a phrase PHRASE. Found again it weighs REPEAT more, at most twice; each message
further back, RECENCY as much. Focus is between the two SCATTERED and FOCUSED: how much of what the
fullest message says, fillers aside, are keywords. So one word of a long talk is little, the same
word in a short request is enough, and no card loses by having many keywords.
"""

import operator
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property, lru_cache
from operator import truediv
from typing import Any

import msgspec

from remit.features.cards.card import MAX_PRIORITY, Card
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
PHRASE = 1.6
REPEAT = 0.15
RECENCY = 0.92
SCATTERED, FOCUSED = 0.6, 1.5
FULL = 0.25
"""The share of keywords in a message at which nothing more is gained."""
_REPEATS = 2
_LOOKED_AT = 64
"""Places of one word that are looked at, from the end: so no repetition makes scoring slow."""
_BETWEEN = 2
"""Words that may stand between those of a phrase."""
_LONG_RUN = 4
"""Signs of a script without borders that make a phrase rather than a word."""


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


class KeywordMatch(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A keyword that was found, how often, and what it adds to the strength."""

    keyword: str
    count: int
    weight: float = 0.0


class Score(msgspec.Struct, frozen=True, gc=False):
    """How relevant a card is, and by which words: so a person can tune a card."""

    value: float
    matches: tuple[KeywordMatch, ...] = ()


class _Keyword(msgspec.Struct, frozen=True, gc=False):
    """A keyword, made ready to be looked for."""

    text: str
    words: tuple[str, ...]
    weight: float
    is_strict: bool
    """Its words stand side by side and in order."""
    joined: str
    """The phrase written as one word."""


class _Hit(msgspec.Struct, frozen=True, gc=False):
    """A keyword that was found: what it adds, and how much of which messages it is."""

    match: KeywordMatch
    covers: tuple[tuple[int, int], ...]


class WordsScorer:
    """Scores cards by the words of a window; what is found once counts for all cards."""

    name = "words"

    def score(self, card: Card, window: Window) -> Score:
        """How relevant a card is."""
        if not window.messages:
            return Score(value=card.priority / MAX_PRIORITY)
        index = window.words
        known: dict[str, _Hit | None] = index.found
        hits: list[_Hit] = []
        for keyword in _keywords(card.triggers.keywords):
            text = keyword.text
            hit = known[text] if text in known else known.setdefault(text, _look(keyword, index))
            if hit is not None:
                hits.append(hit)
        if not hits:
            return _NOTHING
        strength = 0.0
        for hit in hits:
            strength += hit.match.weight
        value = 1 - 2 ** -(strength * _focus(hits, index))
        return Score(value, tuple([hit.match for hit in hits]))


_NOTHING = Score(value=0.0)


@lru_cache(maxsize=8_192)
def _keywords(texts: tuple[str, ...]) -> tuple[_Keyword, ...]:
    return tuple(keyword for text in texts if (keyword := _keyword(text)).words)


def _keyword(text: str) -> _Keyword:
    words = tuple(spelled(text))
    unspaced = any(IS_UNSPACED.match(word) for word in words)
    telling = tuple(word for word in words if word not in SILENT)
    if unspaced:
        weight = PHRASE if len(words) >= _LONG_RUN else 1.0
    else:
        weight = PHRASE if len(words) > 1 else 1.0
        words = telling if len(telling) > 1 else words
    is_strict = unspaced or len(telling) < 2  # noqa: PLR2004 - "on call" is no phrase without "on"
    return _Keyword(text, words, weight, is_strict, "" if unspaced else "".join(words))


def _look(keyword: _Keyword, index: WordIndex) -> _Hit | None:
    places = _places(keyword, index)
    if not places:
        return None
    owner, size, count = index.owner, len(keyword.words), len(places)
    last = owner[places[-1]]
    weight = keyword.weight * RECENCY ** (len(index.lengths) - 1 - last)
    if count == 1:
        return _Hit(KeywordMatch(keyword.text, 1, weight), ((last, size),))
    covered: dict[int, int] = {}
    for at in places[-_LOOKED_AT:]:
        covered[owner[at]] = covered.get(owner[at], 0) + size
    weight *= 1 + REPEAT * min(count - 1, _REPEATS)
    return _Hit(KeywordMatch(keyword.text, count, weight), tuple(covered.items()))


def _places(keyword: _Keyword, index: WordIndex) -> Sequence[int]:
    found = index.places.get(keyword.joined)
    if found:
        return found
    if len(keyword.words) > 1:
        return _phrase(keyword, index)
    at = index.pairs.get(keyword.joined)  # `roll back` where the keyword is `rollback`
    return () if at is None else (at,)


def _phrase(keyword: _Keyword, index: WordIndex) -> Sequence[int]:
    words, where = keyword.words, index.places
    rarest, places = 0, where.get(words[0], [])
    for at, word in enumerate(words):
        found = where.get(word)
        if found is None:
            return ()
        if len(found) < len(places):
            rarest, places = at, found
    places = places[-_LOOKED_AT:]
    sequence = index.sequence
    if keyword.is_strict:
        starts = [at - rarest for at in places]
        return [at for at in starts if tuple(sequence[at : at + len(words)]) == words]
    reach = len(words) - 1 + _BETWEEN
    wanted = frozenset(words)
    near = [(at, sequence[max(0, at - reach) : at + reach + 1]) for at in places]
    return [at for at, said in near if wanted.issubset(said)]


def _focus(hits: Sequence[_Hit], index: WordIndex) -> float:
    covered = [0] * len(index.lengths)
    for hit in hits:
        for message, words in hit.covers:
            covered[message] += words
    share: float = max(map(truediv, covered, index.lengths))
    return SCATTERED + (FOCUSED - SCATTERED) * min(1.0, share / FULL)
