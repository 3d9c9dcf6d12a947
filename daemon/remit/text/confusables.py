"""Letters of other scripts that look like Latin ones.

They are told apart only where somebody mixes scripts in one word: Russian and Greek stay what they
are, and so do formulas, whose letters (alpha, mu, delta) are not in the table.
"""

import re
import unicodedata
from collections.abc import Callable

_CYRILLIC = dict(
    zip(
        "авеікмнорстухѕјԁһӏԛԝьАВЕЅІЈКМНОРСТУХԌԚԜҺ",
        "abeikmhopctyxsjdhlqwbABESIJKMHOPCTYXGQWh",
        strict=True,
    )
)
_GREEK = dict(zip("ονιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "oviABEZHIKMNOPTYX", strict=True))  # noqa: RUF001
_OTHER = dict(zip("օսոհցԱɡɑꞮ", "ounhgUgaI", strict=True))
_SMALL = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))

TWINS: dict[str, str] = {**_CYRILLIC, **_GREEK, **_OTHER, **_SMALL}
"""A letter, and the Latin letter that it looks like."""

_STRICT = frozenset("аеорсухіѕјԁһӏАВЕЅІЈКМНОРСТХο").union(_SMALL)  # noqa: RUF001
"""Those that nobody can tell apart by eye: a word of nothing else passes for a Latin word."""

_BETWEEN = re.compile(r"[\W_]+")
_SIGNS = str.maketrans("01|5", "olls")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[A-Za-z]")


def fold_mixed(text: str, tell: Callable[[int, str, str], None] | None = None) -> str:
    """Latin letters for their twins, in words that mix scripts; every length stays the same.

    `tell` hears of each word: where it starts, what it was, what it became.
    """
    if text.isascii():
        return text

    def folded(match: re.Match[str]) -> str:
        word = match.group()
        if word.isascii() or not _LATIN.search(word):
            return word
        plain = "".join(TWINS.get(letter, letter) for letter in word)
        if plain != word and tell is not None:
            tell(match.start(), word, plain)
        return plain

    return _WORD.sub(folded, text)


def fold_disguised(text: str) -> str:
    """As `fold_mixed`, and words made of nothing but perfect twins as well."""
    if text.isascii():
        return text

    def folded(match: re.Match[str]) -> str:
        word = match.group()
        if word.isascii() or not (_LATIN.search(word) or _STRICT.issuperset(word)):
            return word
        return "".join(TWINS.get(letter, letter) for letter in word)

    return _WORD.sub(folded, text)


def look_of(name: str) -> str:
    """What a name is taken for at a glance: two of the same look can be mistaken for each other."""
    plain = "".join(TWINS.get(char, char) for char in unicodedata.normalize("NFKC", name))
    joined = _BETWEEN.sub("", plain.casefold().translate(_SIGNS))
    return joined.replace("rn", "m").replace("vv", "w")
