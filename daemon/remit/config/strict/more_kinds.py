"""Kinds of values that only cards have: shares, keywords, spans of the day, bounded lists."""

import math
from typing import Any

from remit.config.strict.kinds import BAD, ListKind, Report, TextKind
from remit.config.strict.yaml import Node, Scalar, Sequence
from remit.model.card import PARTS_OF_THE_DAY, parse_day_span

MAX_KEYWORDS = 64
MAX_KEYWORD = 100
"""Bytes of one keyword."""
MAX_ENTRIES = 32
"""Entries of any other list."""


class ShareKind(TextKind, frozen=True):
    """A number from 0 to 1."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a number."""
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            report.add(node.place, "wrong_type", "expected a number", "write one from 0 to 1")
            return BAD
        if not 0 <= value <= 1 or not math.isfinite(value):
            report.add(node.place, "out_of_range", f"{value} is outside 0..1")
            return BAD
        return float(value)

    def schema(self) -> dict[str, Any]:
        """A number inside bounds."""
        return {"type": "number", "minimum": 0, "maximum": 1}


class KeywordKind(TextKind, frozen=True):
    """A word or a phrase; signs in it stand for themselves and are never a pattern."""

    limit: int = MAX_KEYWORD

    def read(self, node: Node, report: Report) -> Any:
        """Read a keyword, with single blanks between its words."""
        text = super().read(node, report)
        if text is BAD:
            return BAD
        plain = " ".join(text.split())
        if not any(char.isalnum() for char in plain):
            hint = "write a word or a phrase, as people say it"
            report.add(node.place, "invalid_name", f"{text!r} holds no word", hint)
            return BAD
        return plain

    def schema(self) -> dict[str, Any]:
        """A short string."""
        return {"type": "string", "minLength": 1, "maxLength": MAX_KEYWORD}


class DaySpanKind(TextKind, frozen=True):
    """A span of the day, or the name of one."""

    limit: int = 20

    def read(self, node: Node, report: Report) -> Any:
        """Read a span as text; where it is used it is parsed again."""
        text = super().read(node, report)
        if text is BAD or parse_day_span(text) is not None:
            return text
        message = f"{text!r} is no span of the day"
        hint = f"write 22:00-06:00, or one of {', '.join(PARTS_OF_THE_DAY)}"
        report.add(node.place, "invalid_name", message, hint)
        return BAD

    def schema(self) -> dict[str, Any]:
        """A span or a word."""
        time = "([01][0-9]|2[0-4]):[0-5][0-9]"
        return {
            "anyOf": [
                {"enum": list(PARTS_OF_THE_DAY)},
                {"type": "string", "pattern": f"^{time} ?[-\u2013] ?{time}$"},
            ]
        }


class DistinctKind(ListKind, frozen=True):
    """A list that is not empty, not long, and says nothing twice."""

    most: int = MAX_ENTRIES

    def read(self, node: Node, report: Report) -> Any:
        """Read the entries."""
        if isinstance(node, Sequence) and not node.items:
            hint = "leave the key out, or name something"
            report.add(node.place, "wrong_type", "expected entries, found an empty list", hint)
            return BAD
        if isinstance(node, Sequence) and len(node.items) > self.most:
            message = f"{len(node.items):,} entries; {self.most} are the limit"
            report.add(node.place, "too_large", message, "keep those that matter most")
            return BAD
        found = super().read(node, report)
        if isinstance(node, Sequence):
            _refuse_repeats(node, report)
        return found

    def schema(self) -> dict[str, Any]:
        """An array inside bounds, or one entry where that is allowed."""
        array = {
            "type": "array",
            "items": self.item.schema(),
            "minItems": 1,
            "maxItems": self.most,
            "uniqueItems": True,
        }
        return {"anyOf": [array, self.item.schema()]} if self.single else array


def _refuse_repeats(node: Sequence, report: Report) -> None:
    seen: set[str] = set()
    for item in node.items:
        if not isinstance(item, Scalar):
            continue
        plain = " ".join(item.text.split()).casefold()
        if plain in seen:
            message = f"{item.text!r} stands here twice"
            report.add(item.place, "duplicate_key", message, "keep one of them")
        seen.add(plain)
