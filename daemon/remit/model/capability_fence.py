"""A fence around the prompt text of one capability, which that text cannot close or imitate.

What looks like the start of such a tag loses its angle bracket, in whatever letters it is written.
"""

import re
import unicodedata

_LABEL = "capability"
_NO_LETTER = re.compile(r"[\W_]+")
_TWINS = str.maketrans("аԁсіӏртуαιτρв" + "i1|!", "adcllptyaltpb" + "llll")
_OPENING = frozenset("<＜﹤‹〈⟨《«˂ᐸ❮❰")  # noqa: RUF001


def fenced_capability(name: str, text: str) -> str:
    """The text of a capability between its tags; an id of a capability needs no quoting."""
    return f'<capability id="{name}">\n{disarmed(text)}\n</capability>'


def disarmed(text: str) -> str:
    """The text, in which nothing starts like a tag of the fence."""
    if _OPENING.isdisjoint(text) or _folded(_LABEL) not in _folded(text):
        return text
    found: list[str] = []
    ahead, label = "", _folded(_LABEL)
    for sign in reversed(text):  # backwards: what follows a bracket is known when it comes
        ahead = (_folded(sign) + ahead)[: len(label)]
        is_tag = sign in _OPENING and ahead == label
        found.append("(" if is_tag else sign)
    return "".join(reversed(found))


def _folded(text: str) -> str:
    """Letters alone, as they look."""
    plain = unicodedata.normalize("NFKD", text) if not text.isascii() else text
    return _NO_LETTER.sub("", plain.casefold().translate(_TWINS))
