"""A card: Markdown that is put before an agent when its conversation calls for it."""

import re
from typing import Literal

import msgspec

from remit.model.place import Place

CardSource = Literal["built_in", "operator", "workspace"]
MAX_CARD_TOKENS = 2_000
MAX_PRIORITY = 100


class Triggers(msgspec.Struct, frozen=True, kw_only=True):
    """When a card is called for; what is empty does not narrow."""

    keywords: tuple[str, ...] = ()
    """Words and phrases, never patterns."""
    session_types: tuple[str, ...] = ()
    confidence_threshold: float = 0.6
    time_of_day: tuple[str, ...] = ()
    """Spans such as `22:00-06:00`, in the daemon's time zone."""
    user_tier: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One card as its file says it; the text is without frontmatter, and not yet sanitised."""

    id: str
    name: str
    description: str
    text: str
    triggers: Triggers = Triggers()
    priority: int = 50
    token_budget: int = 500
    capabilities: tuple[str, ...] = ()
    """Only holders of one of these are given it; empty: everybody may be."""
    language: str = ""
    source: CardSource = "operator"
    place: Place = Place("")


# Spans of the day as cards name them: `22:00-06:00`, or a word such as `morning`.


_DAY = 24 * 60
_TIME = "([01][0-9]|2[0-4]):([0-5][0-9])"
_SPAN = re.compile(rf"{_TIME} ?[-\u2013] ?{_TIME}")


class DaySpan(msgspec.Struct, frozen=True):
    """Minutes of the day, from the first up to but not including the last; it may pass midnight."""

    first: int
    last: int

    def covers(self, minute: int) -> bool:
        """Tell whether a minute of the day lies inside."""
        if self.first < self.last:
            return self.first <= minute < self.last
        return minute >= self.first or minute < self.last


PARTS_OF_THE_DAY: dict[str, DaySpan] = {
    "morning": DaySpan(5 * 60, 12 * 60),
    "afternoon": DaySpan(12 * 60, 17 * 60),
    "evening": DaySpan(17 * 60, 22 * 60),
    "night": DaySpan(22 * 60, 5 * 60),
}


def parse_day_span(text: str) -> DaySpan | None:
    """Read a span or the name of one; None when it is neither, or covers nothing."""
    if text in PARTS_OF_THE_DAY:
        return PARTS_OF_THE_DAY[text]
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    hours, minutes, to_hours, to_minutes = (int(part) for part in found.groups())
    first, last = hours * 60 + minutes, to_hours * 60 + to_minutes
    if first >= _DAY or last > _DAY or first == last:
        return None
    return DaySpan(first, last)
