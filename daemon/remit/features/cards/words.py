"""The default scorer: whole words with their inflections, and phrases.

    strength = sum over the keywords found of  weight * repeats * recency
    value    = 1 - 2 ** -(strength * focus)

A word weighs 1, a phrase PHRASE. Found again it weighs REPEAT more, at most twice; each message
further back, RECENCY as much. Focus is between the two SCATTERED and FOCUSED: how much of what the
fullest message says, fillers aside, are keywords. So one word of a long chatter is little, the same
word in a short request is enough, and no card loses by having many keywords.
"""

from collections.abc import Sequence
from functools import lru_cache
from operator import truediv

import msgspec

from remit.features.cards.window import IS_UNSPACED, SILENT, Window, WordIndex, spelled
from remit.model.card import MAX_PRIORITY, Card

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


class Match(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A keyword that was found, how often, and what it adds to the strength."""

    keyword: str
    count: int
    weight: float = 0.0


class Score(msgspec.Struct, frozen=True, gc=False):
    """How relevant a card is, and by which words: so a person can tune a card."""

    value: float
    matches: tuple[Match, ...] = ()


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

    match: Match
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
        return _Hit(Match(keyword.text, 1, weight), ((last, size),))
    covered: dict[int, int] = {}
    for at in places[-_LOOKED_AT:]:
        covered[owner[at]] = covered.get(owner[at], 0) + size
    weight *= 1 + REPEAT * min(count - 1, _REPEATS)
    return _Hit(Match(keyword.text, count, weight), tuple(covered.items()))


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
