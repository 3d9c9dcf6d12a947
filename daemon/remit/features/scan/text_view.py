"""A text as the rules see it, and what in it is there to be overlooked.

The plain view is lower case, without accents and without disguise, and knows the way back to the
original. What cannot be seen is gone from it, except that hidden letters (tags, variation selectors
that stand for bytes) are turned into the letters that they hide. Payloads in code (base64,
hexadecimal, percent signs, entities) are decoded once, never again.
"""

import base64
import binascii
import codecs
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from string import ascii_lowercase
from typing import Any
from urllib.parse import unquote

import msgspec

from remit.features.scan.rules import Category
from remit.text.unicode import fold_disguised, fold_mixed


class HiddenMarkRule(msgspec.Struct, frozen=True):
    """So many of these characters in a text weigh so much."""

    id: str
    pattern: re.Pattern[str]
    few: int
    """The weight of one."""
    many: int
    """The weight of `enough` of them."""
    enough: int
    category: Category = "hidden_text"


_FLAG = "\U0001f3f4[\U000e0061-\U000e007a]{2,6}\U000e007f"
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

HIDDEN_MARKS: tuple[HiddenMarkRule, ...] = (
    HiddenMarkRule("hidden.tag_letters", re.compile("[\U000e0020-\U000e007f]"), 30, 60, 4),
    HiddenMarkRule(
        "hidden.selectors", re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"), 30, 50, 2
    ),
    HiddenMarkRule(
        "hidden.zero_width",
        re.compile("(?<=[A-Za-z])[\xad\u200b-\u200d\u2060-\u2064\ufeff\u180e](?=[A-Za-z])"),
        10,
        40,
        3,
    ),
    HiddenMarkRule(
        "hidden.zero_width_run", re.compile("[\u200b-\u200d\u2060-\u2064\ufeff]{3,}"), 40, 50, 2
    ),
    HiddenMarkRule("hidden.terminal", re.compile("\x1b\\[|\x08{2,}|\x9b"), 25, 40, 3),
)
_DIRECTION = HiddenMarkRule(
    "hidden.direction", re.compile("[\u202a-\u202e\u2066-\u2069]"), 40, 50, 4
)
_TWINS_FEW, _TWINS_MANY, _TWINS_ENOUGH = 20, 50, 3
_ANY_MARK = re.compile(
    "[\x08\x1b\x9b\xad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef]"
)
"""Every character that one of the rules above counts: few texts have any."""


class HiddenMark(msgspec.Struct, frozen=True):
    """What one of these rules found: the first place, and how much it weighs."""

    rule: str
    category: Category
    weight: int
    at: int


def hidden_marks(text: str) -> Iterator[HiddenMark]:
    """Everything in the text that is there to be overlooked."""
    if text.isascii() and "\x1b" not in text and "\x08" not in text:
        return
    if _ANY_MARK.search(text):
        without_flags = re.sub(_FLAG, lambda match: "x" * len(match.group()), text)
        for rule in HIDDEN_MARKS:
            yield from _counted(rule, without_flags)
        if not _RIGHT_TO_LEFT.search(text):
            yield from _counted(_DIRECTION, text)
    places: list[int] = []
    fold_mixed(text, lambda at, _was, _now: places.append(at))
    if places:
        weight = _TWINS_MANY if len(places) >= _TWINS_ENOUGH else _TWINS_FEW
        yield HiddenMark("hidden.lookalikes", "hidden_text", weight, places[0])


def _counted(rule: HiddenMarkRule, text: str) -> Iterator[HiddenMark]:
    first = rule.pattern.search(text)
    if first is None:
        return
    found = 0
    for _ in rule.pattern.finditer(text):
        found += 1
        if found >= rule.enough:
            break
    weight = rule.many if found >= rule.enough else rule.few
    yield HiddenMark(rule.id, rule.category, weight, first.start())


_PIECES = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]")
_QUOTES = {
    **dict.fromkeys("‘’‚‛′", "'"),  # noqa: RUF001
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),  # noqa: RUF001
    "ı": "i",  # noqa: RUF001
}
_TAGS = range(0xE0020, 0xE007F)
_SELECTORS = range(0xE0100, 0xE01F0)
_SPACED = re.compile(r"(?:\b[a-z](?: {1,3}| ?[.\-_*|/] ?)){4,400}[a-z]\b")
_LEET_WORD = re.compile(r"[a-z0-9@$!|]{3,}")
_LEET = str.maketrans("013457@$!|", "oieastasii")
_LETTERS = re.compile(r"[a-z]+")
_TURNED = ("erongi", "dragersid", "tegrof", "snoitcurtsni")
_ROTATED = ("vtaber", "qvfertneq", "sbetrg", "vafgehpgvba")


class TextView(msgspec.Struct, frozen=True):
    """A text to match against, and the steps from its offsets to those of the original."""

    text: str
    starts: tuple[int, ...] = (0,)
    origins: tuple[int, ...] = (0,)

    def origin(self, at: int) -> int:
        """Where in the original the character at `at` comes from."""
        step = bisect_right(self.starts, at) - 1
        return self.origins[step] + at - self.starts[step]


def plain(text: str) -> TextView:
    """The view that every rule sees."""
    if text.isascii():
        return TextView(text.lower())
    parts: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    length = 0
    for match in _PIECES.finditer(fold_disguised(text)):
        piece = match.group()
        folded = piece.lower() if piece.isascii() else fold_char(piece)
        starts.append(length)
        origins.append(match.start())
        parts.append(folded)
        length += len(folded)
    return TextView("".join(parts), tuple(starts), tuple(origins))


_KNOWN: dict[str, str] = {}
_MOST_KNOWN = 20_000


def fold_char(char: str) -> str:
    """What one character beyond ASCII stands for; nothing, if it cannot be seen."""
    known = _KNOWN.get(char)
    if known is None:
        known = _fold_char(char)
        if len(_KNOWN) < _MOST_KNOWN:
            _KNOWN[char] = known
    return known


def _fold_char(char: str) -> str:
    code = ord(char)
    if code in _TAGS:
        return chr(code - 0xE0000).lower()
    if code in _SELECTORS:
        hidden = chr(code - 0xE0100 + 16)
        return hidden.lower() if hidden.isascii() and hidden.isprintable() else ""
    if char in _QUOTES:
        return _QUOTES[char]
    if char.isspace():
        return "\n" if char in "\x85\u2028\u2029" else " "
    bare = "".join(
        part
        for part in unicodedata.normalize("NFKD", char)
        if unicodedata.category(part) not in _DROPPED
    )
    return unicodedata.normalize("NFC", bare).lower()


_DROPPED = frozenset({"Mn", "Me", "Cf", "Cc", "Cs"})


def fold_pattern(pattern: str) -> str:
    """A pattern with its letters folded as text is; ASCII, and with it the syntax, stays."""
    return "".join(char if char.isascii() else fold_char(char) for char in pattern)


def spaced(view: TextView) -> list[tuple[str, int]]:
    """Words whose letters stand apart, `i g n o r e`, put together; each with where it starts."""
    return [
        (re.sub(r"[^a-z]+", "", match.group()), view.origin(match.start()))
        for match in _SPACED.finditer(view.text)
    ]


def unleeted(view: TextView) -> TextView | None:
    """The view with letters for the digits that stand for them; none if nothing changes."""
    text = _LEET_WORD.sub(_unleeted_word, view.text)
    return None if text == view.text else TextView(text, view.starts, view.origins)


def _unleeted_word(match: re.Match[str]) -> str:
    word = match.group()
    return word if word.isalpha() or word.isdigit() else word.translate(_LEET)


_TELLING = (
    *("ignore", "disregard", "forget", "everything", "previous", "instruction", "instructions"),
    *("prompt", "system", "password", "secret", "reveal", "repeat", "output"),
)
"""Words that orders to an agent are made of; whoever hides them has to misspell them."""
_LONG_WORD = 8
_HONEST = frozenset({"foret", "pervious", "precious", "revel"})
"""Words of their own, which are one letter away from a telling one."""


@cache
def _misspelt() -> Any:
    """A pattern of RE2, as there are too many alternatives for `re`."""
    import re2  # noqa: PLC0415 - a native library: commands that scan nothing do not load it

    ways = (way for word in _TELLING for way in _ways_to_misspell(word))
    return re2.compile(rf"\b(?:{'|'.join(ways)})\b")


def _ways_to_misspell(word: str) -> Iterator[str]:
    """A letter said twice, one left out, two neighbours changed about, one wrong in a long word.

    None of them matches the word itself, which ordinary texts are full of.
    """
    for at, letter in enumerate(word):
        before, after = word[:at], word[at + 1 :]
        yield f"{before}{letter}{{2,3}}{after}"
        if not before or not after:
            continue
        yield before + after
        if after[0] != letter:
            yield f"{before}{after[0]}{letter}{after[1:]}"
        if len(word) >= _LONG_WORD:
            yield f"{before}[{ascii_lowercase.replace(letter, '')}]{after}"


@cache
def _meant(word: str) -> str:
    """The telling word that a misspelt one stands for."""
    if word in _TELLING or word in _HONEST:
        return word
    return next(
        (told for told in _TELLING for way in _ways_to_misspell(told) if re.fullmatch(way, word)),
        word,
    )


def respelt(view: TextView) -> TextView | None:
    """The view with telling words as they are spelt; none if nothing changes."""
    edits = [
        (match.start(), match.end(), meant)
        for match in _misspelt().finditer(view.text)
        if (meant := _meant(match.group())) != match.group()
    ]
    return _edited(view, edits) if edits else None


def _edited(view: TextView, edits: Sequence[tuple[int, int, str]]) -> TextView:
    """The view with other words in some places, which still knows where everything stood."""
    parts: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    at = length = 0
    for start, end, word in (*edits, (len(view.text), len(view.text), "")):
        steps = view.starts[bisect_right(view.starts, at) : bisect_right(view.starts, start)]
        for step in (at, *steps, start):
            starts.append(length + step - at)
            origins.append(view.origin(step))
        parts += (view.text[at:start], word)
        length += start - at + len(word)
        at = end
    return TextView("".join(parts), tuple(starts), tuple(origins))


def turned(view: TextView) -> TextView | None:
    """Each line read from its end, if a telling word stands there that way."""
    if not any(word in view.text for word in _TURNED):
        return None
    return TextView(
        "\n".join(line[::-1] for line in view.text.split("\n")), view.starts, view.origins
    )


def rotated(view: TextView) -> TextView | None:
    """The view by ROT13, if a telling word stands there that way."""
    if not any(word in view.text for word in _ROTATED):
        return None
    return TextView(
        _LETTERS.sub(lambda m: codecs.encode(m.group(), "rot13"), view.text),
        view.starts,
        view.origins,
    )


MAX_CHUNKS = 64
MAX_CHUNK = 65_536
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(r"(?:\b|(?<=[g-zG-Z_]))(?:0x)?[0-9a-fA-F]{2}[ :,]?(?:[0-9a-fA-F]{2}[ :,]?){11,}")
_BITS = re.compile(r"\b[01]{8}(?: ?[01]{8}){5,}")
_ESCAPED_HEX = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}(?:\\x[0-9a-fA-F]{2}){5,}|u00[0-9a-fA-F]{2}(?:\\u00[0-9a-fA-F]{2}){5,})"
)
_WORD = re.compile(r"\S+")
_LINE = re.compile(r"[^\n]+")
_NOT_HEX = re.compile(r"\\x|\\u00|0x|[^0-9a-fA-F]")
_READABLE = 0.9
_SHORTEST = 8


def decoded_chunks(text: str) -> Iterator[tuple[str, int]]:
    """What stands in code in the text, readable, and where; at most `MAX_CHUNKS` of each."""
    for pattern, mark, decode in (
        (_BASE64, "", _from_base64),
        (_HEX, "", _from_hex),
        (_ESCAPED_HEX, "\\", _from_hex),
        (_BITS, "0", _from_bits),
        (_WORD, "%", unquote),
        (_LINE, "&", _from_entities),
    ):
        marked = (match for match in pattern.finditer(text) if mark in match.group())
        for match in islice(marked if mark in text else (), MAX_CHUNKS):
            chunk = match.group()[:MAX_CHUNK]
            found = decode(chunk)
            if found != chunk and is_readable(found):
                yield found, match.start()


def is_readable(text: str) -> bool:
    """Tell whether a person could read this."""
    if len(text) < _SHORTEST:
        return False
    good = sum(char.isalnum() or char in " \n.,:;!?'\"-_/@<>()[]{}|" for char in text)
    return good >= _READABLE * len(text)


def _from_entities(chunk: str) -> str:
    from html import unescape  # noqa: PLC0415 - a megabyte of names, and few texts have entities

    return unescape(chunk)


def _from_base64(chunk: str) -> str:
    plain = chunk.rstrip("=").translate(str.maketrans("-_", "+/"))
    plain = plain[: len(plain) - 1] if len(plain) % 4 == 1 else plain
    try:
        return _text(base64.b64decode(plain + "=" * (-len(plain) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _from_hex(chunk: str) -> str:
    digits = _NOT_HEX.sub("", chunk)
    return _text(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _from_bits(chunk: str) -> str:
    digits = chunk.replace(" ", "")
    return _text(bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits), 8)))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
