"""Characters of others: those that nobody sees, and letters that look like Latin ones.

What nobody sees is taken out, but for joiners and styles that a script needs. Letters that look
alike are told apart only where somebody mixes scripts in one word: Russian and Greek stay what they
are, and so do formulas, whose letters (alpha, mu, delta) are not in the table.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Literal

_STRIPPED = re.compile(
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls, lone halves of pairs, marks of direction, tags. Joiners stay: scripts need them."""
_EMPTY_LINES = re.compile(r"\n{3,}")
LINE_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
"""Every way to begin a line becomes one, so that no role can hide behind another."""

Unseen = Literal["invisible", "control", "direction"]

_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROL = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_INVISIBLE = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_TERMINAL = r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]"
"""A whole escape sequence: its letters would stay behind without it."""
_UNSEEN = re.compile(f"{_TERMINAL}|[{_DIRECTION}]+|[{_CONTROL}]+|[{_INVISIBLE}]")
_IS_DIRECTION = re.compile(f"[{_DIRECTION}]")
_IS_CONTROL = re.compile(f"[{_CONTROL}]")

ZWNJ, ZWJ, TEXT_STYLE, EMOJI_STYLE = "\u200c", "\u200d", "\ufe0e", "\ufe0f"
_KEYCAP = "\u20e3"
_JOINING = re.compile(
    "[\u0620-\u065f\u066e-\u06d3\u06d5-\u06dc\u06e1-\u06ff\u0750-\u077f\u08a0-\u08e1]"
)
"""Arabic script: Persian and Urdu put a non-joiner between letters of one word."""
_VIRAMA = re.compile("[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca]")
_INDIC = re.compile("[\u0900-\u0dff]")
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")

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


def one_line(text: Any) -> str:
    """The text on one line; what is no text is none."""
    if not isinstance(text, str):
        return ""
    return " ".join(_STRIPPED.sub("", text).split())


def many_lines(text: str) -> str:
    """The text with plain line breaks, and never more than one empty line in a row."""
    text = _STRIPPED.sub("", LINE_BREAKS.sub("\n", text))
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return _EMPTY_LINES.sub("\n\n", text).strip("\n")


def encodable(text: str) -> str:
    """The text with a sign for each lone half of a pair, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def unseen_spans(line: str) -> Iterator[tuple[int, int, Unseen, str]]:
    """What has to go from a line: start, end, kind, and what is put in its place."""
    for match in _UNSEEN.finditer(line):
        found = match.group()
        if _IS_CONTROL.match(found):
            yield match.start(), match.end(), "control", ""
        elif _IS_DIRECTION.match(found):
            yield match.start(), match.end(), "direction", ""
        elif not _needed(line, match.start(), found):
            yield match.start(), match.end(), "invisible", _shown_as(found)


def _shown_as(char: str) -> str:
    if char == "\u2800":
        return " "
    return "\ufffd" if "\ud800" <= char <= "\udfff" else ""


def _needed(line: str, at: int, char: str) -> bool:
    """Tell whether the writing is wrong without this character, and nothing can hide in it."""
    before, after = line[at - 1 : at] if at else "", line[at + 1 : at + 2]
    if char == ZWNJ:
        return _between_letters(before, after)
    if char == ZWJ:
        return _between_letters(before, after) or (
            _pictured(line, at - 1) and bool(after) and _is_picture(after)
        )
    if char in (TEXT_STYLE, EMOJI_STYLE):
        return bool(before) and (
            _is_picture(before) or (before in "#*0123456789" and after == _KEYCAP)
        )
    return False


def _between_letters(before: str, after: str) -> bool:
    if _JOINING.match(before) and _JOINING.match(after):
        return True
    return bool(_VIRAMA.match(before) and _INDIC.match(after))


def _pictured(line: str, at: int) -> bool:
    """Tell whether a picture stands before `at`, with its style or colour of skin."""
    if at > 0 and (line[at] == EMOJI_STYLE or _SKIN.match(line[at])):
        at -= 1
    return at >= 0 and _is_picture(line[at])


def _is_picture(char: str) -> bool:
    # `>` has no style, and may still be taken away with a marker that it ends.
    return not char.isascii() and (unicodedata.category(char) in ("So", "Sm") or char in "‼⁉〰〽")


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
