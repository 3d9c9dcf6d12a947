"""The keywords of a card, made ready to be looked for, and what each of them weighs.

A word weighs what it is worth: people say EVERY_DAY words without meaning the card, and RARE ones
hardly. A phrase weighs PHRASE times the mean of its words, a name such as `state:set` NAMED.
"""

import re
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from remit.text.words import IS_UNSPACED, SILENT, spelled

NAME = re.compile(
    r"(?<![a-z0-9_:/])([a-z][a-z0-9]*+[:_/])[a-z0-9][a-z0-9.-]*+(?:[:_/][a-z0-9][a-z0-9.-]*+)*"
)
"""A name as programs write it, and in its group what it begins with, as in `state:`."""
EVERY_DAY, OFTEN, RARE = 0.85, 0.95, 1.05
"""What a word weighs, by how often people write it. Steeper ones were no better on any set."""
PHRASE, TINTED, FILLED = 1.6, 1.15, 0.4
"""What a phrase weighs for each word in the mean; with one word that tells something;
each word of one that has none, up to four."""
NAMED = 2.0
_FILLED = 4
_LONG_RUN = 4
"""Signs of a script without borders that make a phrase rather than a word."""


class Keyword(msgspec.Struct, frozen=True, gc=False):
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


@lru_cache(maxsize=8_192)
def keywords_of(texts: tuple[str, ...]) -> tuple[Keyword, ...]:
    """Keywords as authors wrote them, made ready; those without a word are left out."""
    return tuple(keyword for text in texts if (keyword := _keyword(text)).words)


def _keyword(text: str) -> Keyword:
    words = tuple(spelled(text))
    lowered = text.lower()
    if NAME.fullmatch(lowered) or NAME.fullmatch(f"{lowered}x"):  # `state:` is the start of names
        joined = "" if ":" in lowered or lowered.endswith("/") else "".join(words)
        return Keyword(text, words, NAMED, is_strict=True, joined=joined, name=lowered)
    unspaced = any(IS_UNSPACED.match(word) for word in words)
    telling = tuple(word for word in words if word not in SILENT)
    if unspaced:
        weight = PHRASE if len(words) >= _LONG_RUN else RARE
    else:
        weight = _weight(words, telling)
        words = telling if len(telling) > 1 else words
    is_strict = unspaced or len(telling) < 2  # noqa: PLR2004 - "on call" is no phrase without "on"
    return Keyword(text, words, weight, is_strict, "" if unspaced else "".join(words))


def _weight(words: tuple[str, ...], telling: tuple[str, ...]) -> float:
    if len(words) == 1:
        return rarity(words[0])
    if not telling:
        return FILLED * min(len(words), _FILLED)
    return (PHRASE if len(telling) > 1 else TINTED) * sum(map(rarity, telling)) / len(telling)


def rarity(word: str) -> float:
    """What a word without its endings weighs; words of other languages are as those said often."""
    return _rarities().get(word, RARE) if word.isascii() else OFTEN


@cache
def _rarities() -> dict[str, float]:
    lines = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").splitlines()
    found, weight = dict.fromkeys(SILENT, EVERY_DAY), RARE
    for line in lines:
        if line.startswith("["):
            weight = EVERY_DAY if line == "[every day]" else OFTEN
        elif not line.startswith("#"):
            found |= dict.fromkeys(line.split(), weight)
    return found
