"""Text by others, made fit to be shown: one level of line breaks, nothing that cannot be seen."""

import re
from typing import Any

_UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls, lone halves of pairs, marks of direction, tags. Joiners stay: scripts need them."""
_LINE_BREAKS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_EMPTY_LINES = re.compile(r"\n{3,}")


def one_line(text: Any) -> str:
    """The text on one line; what is no text is none."""
    if not isinstance(text, str):
        return ""
    return " ".join(_UNSEEN.sub("", text).split())


def many_lines(text: str) -> str:
    """The text with plain line breaks, and never more than one empty line in a row."""
    text = _UNSEEN.sub("", _LINE_BREAKS.sub("\n", text))
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return _EMPTY_LINES.sub("\n\n", text).strip("\n")


def encodable(text: str) -> str:
    """The text with a sign for each lone half of a pair, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# Text of upstream servers, as a model may be shown it.


def cleaned_text(text: str) -> str:
    """The text without what cannot be seen, and with no live marker of a role."""
    from remit.text.sanitise import sanitise  # noqa: PLC0415 - for upstream tools only

    return text if text.isascii() and text.isalnum() else sanitise(text).text
