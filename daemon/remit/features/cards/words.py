"""The default scorer: whole words with inflections, phrases, and names, by how rare they are.

    strength = sum over what is found of  weight * repeats * recency
    value    = 1 - 2 ** -(strength * focus)

The scale is absolute: a value says the same of every card, however many there are. A word weighs
the less the more often people write it, a phrase PHRASE times the mean of its words, a name such as
`state:set` NAMED. Found again it weighs REPEAT more, at most twice; each message further back,
RECENCY as much. Focus grows with the share of the fullest message that
is found, fillers aside. So one word of a long talk is little, the same word in a short request is
enough, and no card loses by having many keywords.

A card with words of context is meant only beside one of them: without, its keywords weigh ALONE as
much, names excepted. Each word of context adds BESIDE, and on its own it calls for nothing; the
words of an `unless` that is found are no context.
"""

import operator
import re
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from operator import truediv
from statistics import fmean
from typing import Any

import msgspec

from remit.features.cards.card import MAX_PRIORITY, Card
from remit.text.words import IS_UNSPACED, SILENT, Frequency, frequency, spelled

WINDOW = 5
MAX_MESSAGE = 32_768
"""Characters of one message that are looked at, from its end."""
_APART = 8
"""Empty places between two messages: no phrase reaches over them."""
_MOST_NAMES = 1_000
"""Names of one message that are looked at, from its end."""
NAME = re.compile(
    r"(?<![a-z0-9_:/])([a-z][a-z0-9]*+[:_/])[a-z0-9][a-z0-9.-]*+(?:[:_/][a-z0-9][a-z0-9.-]*+)*"
)
"""A name as programs write it, and in its group what it begins with, as in `state:`."""
WEIGHTS: dict[Frequency, float] = {"every_day": 0.85, "often": 0.95, "rare": 1.05}
"""What a word weighs, by how often people write it. Steeper ones were no better on any set."""
PHRASE, TINTED, FILLED = 1.6, 1.15, 0.4
"""What a phrase weighs for each word in the mean; with one word that tells something;
each word of one that has none, up to four."""
NAMED = 2.0
_FILLED = 4
_LONG_RUN = 4
"""Signs of a script without borders that make a phrase rather than a word."""
BESIDE, MOST_BESIDE = 0.4, 3
ALONE = 0.25
REPEAT = 0.15
RECENCY = 0.92
FOCUS = ((0.0, 0.6), (0.25, 1.4), (0.5, 1.6))
"""What is found of a message, as a share, and what it multiplies; between them in a line."""
_REPEATS = 2
_LOOKED_AT = 64
"""Places of one word that are looked at, from the end: so no repetition makes scoring slow."""
_BETWEEN = 2
"""Words that may stand between those of a phrase; one fewer where their order is another."""


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


class KeywordMatch(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A keyword that was found, how often, and what it adds to the strength."""

    keyword: str
    count: int
    weight: float = 0.0


class Score(msgspec.Struct, frozen=True, gc=False):
    """How relevant a card is, and by which words: so a person can tune a card."""

    value: float
    matches: tuple[KeywordMatch, ...] = ()
    signals: int | None = None
    """How many of them share no word, a name counting twice; None: the scorer does not tell."""


class _Keyword(msgspec.Struct, frozen=True, gc=False):
    """A keyword, made ready to be looked for."""

    text: str
    words: tuple[str, ...]
    weight: float
    is_strict: bool
    """Its words stand side by side and in order."""
    joined: str
    """The phrase written as one word."""
    name: str = ""
    """What is looked for letter by letter."""


class _Hit(msgspec.Struct, frozen=True, gc=False):
    """A keyword that was found: what it adds, and how much of which messages it is."""

    match: KeywordMatch
    covers: tuple[tuple[int, int], ...]
    words: tuple[str, ...]
    recency: float
    is_name: bool = False


class WordsScorer:
    """Scores cards by the words of a window; what is found once counts for all cards."""

    name = "words"

    def score(self, card: Card, window: Window) -> Score:
        """How relevant a card is."""
        if not window.messages:
            return Score(value=card.priority / MAX_PRIORITY)
        index, triggers = window.words, card.triggers
        hits = _found(_keywords(triggers.keywords), index)
        if not hits:
            return _NOTHING
        company = _found(_keywords(triggers.context), index) if triggers.context else []
        if triggers.unless:
            company = _meant(company, _found(_keywords(triggers.unless), index))
        own = {word for hit in hits for word in hit.words}
        beside = _distinct(hit for hit in company if own.isdisjoint(hit.words))
        matches = [hit.match for hit in hits]
        if triggers.context and not beside and not _is_accompanied(hits, company):
            matches = [_weaker(hit) for hit in hits]
        aside = [_aside(hit) for hit in beside]
        strength = _strength(hits, matches) + sum(one.weight for one in aside[:MOST_BESIDE])
        value = 1 - 2 ** -(strength * _focus([*hits, *beside], index))
        return Score(value, (*matches, *aside), _signals([*hits, *beside]))


_NOTHING = Score(value=0.0)


def _found(keywords: Sequence[_Keyword], index: WordIndex) -> list[_Hit]:
    known: dict[str, _Hit | None] = index.found
    hits: list[_Hit] = []
    for keyword in keywords:
        text = keyword.text
        hit = known[text] if text in known else known.setdefault(text, _look(keyword, index))
        if hit is not None:
            hits.append(hit)
    return hits


def _distinct(hits: Iterable[_Hit]) -> list[_Hit]:
    """Of those with the same words, the first; those that share a word with one before, no more."""
    found, taken = [], set[str]()
    for hit in hits:
        if taken.isdisjoint(hit.words):
            taken.update(hit.words)
            found.append(hit)
    return found


def _meant(company: list[_Hit], elsewhere: Sequence[_Hit]) -> list[_Hit]:
    """Context without the words that stand in a phrase which means something else."""
    lost = {word for hit in elsewhere for word in hit.words}
    return [hit for hit in company if not lost.intersection(hit.words)]


def _is_accompanied(hits: Sequence[_Hit], company: Sequence[_Hit]) -> bool:
    """Tell whether context is inside a phrase, or an author wrote a keyword as context too."""
    texts, words = {hit.match.keyword for hit in hits}, {hit.words for hit in hits}
    return any(one.match.keyword in texts or one.words not in words for one in company)


def _weaker(hit: _Hit) -> KeywordMatch:
    if hit.is_name:
        return hit.match
    return msgspec.structs.replace(hit.match, weight=hit.match.weight * ALONE)


def _strength(hits: Sequence[_Hit], matches: Sequence[KeywordMatch]) -> float:
    """The weight of all, but a phrase adds only what it weighs more than the keywords inside it."""
    if len(hits) == 1:
        return matches[0].weight
    adds: dict[frozenset[str], float] = {}
    for hit, match in sorted(zip(hits, matches, strict=True), key=_length):
        words = frozenset(hit.words)
        inside = sum([more for part, more in adds.items() if part <= words])
        adds[words] = adds.get(words, 0.0) + max(0.0, match.weight - inside)
    return sum(adds.values())


def _aside(hit: _Hit) -> KeywordMatch:
    return msgspec.structs.replace(hit.match, weight=BESIDE * hit.recency)


def _signals(hits: Sequence[_Hit]) -> int:
    """How many of what was found share no word: `mail` and `mail relay` are one."""
    apart = _distinct(sorted(hits, key=_size))
    return len(apart) + sum(hit.is_name for hit in apart)


def _size(hit: _Hit) -> int:
    return len(hit.words)


def _length(pair: tuple[_Hit, KeywordMatch]) -> int:
    return len(pair[0].words)


@lru_cache(maxsize=8_192)
def _keywords(texts: tuple[str, ...]) -> tuple[_Keyword, ...]:
    return tuple(keyword for text in texts if (keyword := _keyword(text)).words)


def _keyword(text: str) -> _Keyword:
    words = tuple(spelled(text))
    lowered = text.lower()
    if NAME.fullmatch(lowered) or NAME.fullmatch(f"{lowered}x"):  # `state:` is the start of names
        joined = "" if ":" in lowered or lowered.endswith("/") else "".join(words)
        return _Keyword(text, words, NAMED, is_strict=True, joined=joined, name=lowered)
    unspaced = any(IS_UNSPACED.match(word) for word in words)
    telling = tuple(word for word in words if word not in SILENT)
    if unspaced:
        weight = PHRASE if len(words) >= _LONG_RUN else WEIGHTS["rare"]
    else:
        weight = _weight(words, telling)
        words = telling if len(telling) > 1 else words
    is_strict = unspaced or len(telling) < 2  # noqa: PLR2004 - "on call" is no phrase without "on"
    return _Keyword(text, words, weight, is_strict, "" if unspaced else "".join(words))


def _weight(words: tuple[str, ...], telling: tuple[str, ...]) -> float:
    if len(words) == 1:
        return WEIGHTS[frequency(words[0])]
    if not telling:
        return FILLED * min(len(words), _FILLED)
    return (PHRASE if len(telling) > 1 else TINTED) * fmean(
        WEIGHTS[frequency(word)] for word in telling
    )


def _look(keyword: _Keyword, index: WordIndex) -> _Hit | None:
    if keyword.name and (named := _named(keyword, index)) is not None:
        return named
    places = _places(keyword, index) if keyword.joined or not keyword.name else ()
    if not places:
        return None
    owner, size, count = index.owner, len(keyword.words), len(places)
    recency = RECENCY ** (len(index.lengths) - 1 - owner[places[-1]])
    weight, covered = keyword.weight * recency, {owner[places[-1]]: size}
    if count > 1:
        covered = {}
        for at in places[-_LOOKED_AT:]:
            covered[owner[at]] = covered.get(owner[at], 0) + size
        weight *= 1 + REPEAT * min(count - 1, _REPEATS)
    match = KeywordMatch(keyword.text, count, weight)
    return _Hit(match, tuple(covered.items()), keyword.words, recency)


def _named(keyword: _Keyword, index: WordIndex) -> _Hit | None:
    at = index.names.get(keyword.name)
    if at is None:
        return None
    recency = RECENCY ** (len(index.lengths) - 1 - at)
    match = KeywordMatch(keyword.text, 1, keyword.weight * recency)
    covers = ((at, len(keyword.words)),)
    return _Hit(match, covers, keyword.words, recency, is_name=True)


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
    return [at for at in places if _stands_near(words, sequence, at)]


def _stands_near(words: tuple[str, ...], sequence: Sequence[str], at: int) -> bool:
    """Tell whether a phrase stands around a place: in order, or in any order and closer."""
    wanted, reach = frozenset(words), len(words) - 1 + _BETWEEN
    said = sequence[max(0, at - reach) : at + reach + 1]
    if not wanted.issubset(said):
        return False
    close = reach - 1
    if wanted.issubset(sequence[max(0, at - close) : at + close + 1]):
        return True
    left = iter(said)
    return all(word in left for word in words)


def _focus(hits: Sequence[_Hit], index: WordIndex) -> float:
    covered = [0] * len(index.lengths)
    for hit in hits:
        for message, words in hit.covers:
            covered[message] += words
    share: float = max(map(truediv, covered, index.lengths))
    for (low, less), (high, more) in pairwise(FOCUS):
        if share < high:
            return less + (more - less) * (share - low) / (high - low)
    return FOCUS[-1][1]
