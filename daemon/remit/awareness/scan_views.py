"""A text as the rules see it: lower case, no accents, no disguise, and the way back.

What cannot be seen is gone, except that hidden letters (tags, variation selectors that stand for
bytes) are turned into the letters that they hide.
"""

import codecs
import re
import unicodedata
from bisect import bisect_right

import msgspec

from remit.awareness.confusables import fold_disguised

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


class View(msgspec.Struct, frozen=True):
    """A text to match against, and the steps from its offsets to those of the original."""

    text: str
    starts: tuple[int, ...] = (0,)
    origins: tuple[int, ...] = (0,)

    def origin(self, at: int) -> int:
        """Where in the original the character at `at` comes from."""
        step = bisect_right(self.starts, at) - 1
        return self.origins[step] + at - self.starts[step]


def plain(text: str) -> View:
    """The view that every rule sees."""
    if text.isascii():
        return View(text.lower())
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
    return View("".join(parts), tuple(starts), tuple(origins))


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


def spaced(view: View) -> list[tuple[str, int]]:
    """Words whose letters stand apart, `i g n o r e`, put together; each with where it starts."""
    return [
        (re.sub(r"[^a-z]+", "", match.group()), view.origin(match.start()))
        for match in _SPACED.finditer(view.text)
    ]


def unleeted(view: View) -> View | None:
    """The view with letters for the digits that stand for them; none if nothing changes."""
    text = _LEET_WORD.sub(_unleeted_word, view.text)
    return None if text == view.text else View(text, view.starts, view.origins)


def _unleeted_word(match: re.Match[str]) -> str:
    word = match.group()
    return word if word.isalpha() or word.isdigit() else word.translate(_LEET)


def turned(view: View) -> View | None:
    """Each line read from its end, if a telling word stands there that way."""
    if not any(word in view.text for word in _TURNED):
        return None
    return View("\n".join(line[::-1] for line in view.text.split("\n")), view.starts, view.origins)


def rotated(view: View) -> View | None:
    """The view by ROT13, if a telling word stands there that way."""
    if not any(word in view.text for word in _ROTATED):
        return None
    return View(
        _LETTERS.sub(lambda m: codecs.encode(m.group(), "rot13"), view.text),
        view.starts,
        view.origins,
    )
