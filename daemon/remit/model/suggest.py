"""What somebody probably meant. Fuzzy matching serves these hints and nothing else.

A word is near when few letters differ: at most a third of them, in each part of a name by itself,
so that a namespace in common makes nothing near. Near as well are the same words in another order
and an event by its last part.
"""

import re
from collections.abc import Iterable

_FEW = 12
_CANDIDATES = 64
_SHARE = 3
"""One letter in so many may differ."""


def nearest(word: str, known: Iterable[str], *, count: int = 1) -> list[str]:
    """The known words that are near to `word`, best first."""
    import difflib  # noqa: PLC0415 - 3 ms that only a mistake has to pay

    found = difflib.get_close_matches(word, sorted(known), n=_CANDIDATES, cutoff=0.6)
    return [one for one in found if is_near(word, one)][:count]


def is_near(word: str, known: str) -> bool:
    """Tell whether somebody who wrote `word` may have meant `known`."""
    word, known = word.casefold(), known.casefold()
    if known.endswith(f":{word}") or _words(word) == _words(known):
        return True
    parts, others = word.split(":"), known.split(":")
    if len(parts) != len(others):
        return _is_similar(word, known)
    return all(_is_similar(one, other) for one, other in zip(parts, others, strict=True))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint with the nearest known word, or the list of words when it is short."""
    choices = sorted(known)
    near = nearest(word, choices)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(choices)}" if 0 < len(choices) <= _FEW else ""


def _words(text: str) -> list[str]:
    return sorted(re.split(r"[^0-9a-z]+", text))


def _is_similar(one: str, other: str) -> bool:
    most = max(len(one), len(other), _SHARE) // _SHARE
    return abs(len(one) - len(other)) <= most and _distance(one, other) <= most


def _distance(one: str, other: str) -> int:
    """How many letters to add, leave out, change or swap with the next one."""
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        before, last, row = row, before, [at]
        for to, wanted in enumerate(other, start=1):
            cost = min(before[to], row[to - 1]) + 1
            cost = min(cost, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
    return row[-1]
