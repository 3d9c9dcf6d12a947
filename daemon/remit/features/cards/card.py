"""A card: Markdown that is put before an agent when its conversation calls for it.

Its file has strict frontmatter. One mistake anywhere and the whole card is left out: a card whose
`capabilities` were misspelt and passed over would be shown to everybody.
"""

import math
import re
from typing import Any, Literal

import msgspec

from remit.config.definitions.capabilities import CAPABILITY_NAME
from remit.config.strict.frontmatter import Markdown, read_markdown
from remit.config.strict.kinds import (
    BAD,
    DistinctKind,
    Field,
    Report,
    TextKind,
    WholeKind,
)
from remit.config.strict.yaml import Node, Scalar
from remit.errors import Place
from remit.features.skills.extension_file import EntryKind

CardSource = Literal["built_in", "operator", "store", "catalogue", "workspace"]
"""Where a card comes from, the strongest first."""
MAX_CARD_TOKENS = 2_000
MAX_PRIORITY = 100
MAX_KEYWORDS = 64
MAX_KEYWORD = 100
"""Bytes of one keyword."""
MAX_CARD_BYTES = 50 * 1024
CARD_ID = r"[a-z0-9][a-z0-9_.-]{0,63}"
_DAY = 24 * 60
_TIME = "([01][0-9]|2[0-4]):([0-5][0-9])"
_SPAN = re.compile(rf"{_TIME} ?[-\u2013] ?{_TIME}")


class Triggers(msgspec.Struct, frozen=True, kw_only=True):
    """When a card is called for; what is empty does not narrow."""

    keywords: tuple[str, ...] = ()
    """Words and phrases, never patterns."""
    context: tuple[str, ...] = ()
    """What makes keywords mean this card; on its own it calls for nothing."""
    unless: tuple[str, ...] = ()
    """Phrases whose words are no context: an `estate agent` is no agent here."""
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
    version: str = ""
    reference: str = ""
    """Its reference document: a file beside the card, which is read on demand, or a URL."""
    source: CardSource = "operator"
    place: Place = Place("")


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


_REFERENCE = r"https://[!-~]{1,500}|(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*){1,4}\.md"
_WORD = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}"
_WORDS = DistinctKind(TextKind(pattern=_WORD, what="a word"), single=True)

CARD_ALIASES = {
    "sessionTypes": "session_types",
    "confidenceThreshold": "confidence_threshold",
    "timeOfDay": "time_of_day",
    "userTier": "user_tier",
    "environmentType": "environment",
    "tokenBudget": "token_budget",
    "estimatedTokens": "token_budget",
}
"""Spellings of other programs, and the keys they stand for."""

TRIGGERS = EntryKind(
    {
        "keywords": Field(
            DistinctKind(KeywordKind(), most=MAX_KEYWORDS),
            "Words and phrases that call for it; never patterns",
            required=True,
        ),
        "context": Field(
            DistinctKind(KeywordKind(), most=MAX_KEYWORDS),
            "Words beside which the keywords mean this card; alone they call for nothing",
        ),
        "unless": Field(
            DistinctKind(KeywordKind(), most=MAX_KEYWORDS),
            "Phrases in which words of the context mean something else",
        ),
        "session_types": Field(_WORDS, "Only in these sessions; everywhere when absent"),
        "confidence_threshold": Field(ShareKind(), "The least relevance, 0 to 1"),
        "time_of_day": Field(
            DistinctKind(DaySpanKind(), single=True),
            "Only then, in the daemon's time zone: 22:00-06:00, morning",
        ),
        "user_tier": Field(_WORDS, "Only for these tiers of users"),
        "environment": Field(_WORDS, "Only in these environments"),
    },
    lambda values, _node: values,
    "triggers",
    CARD_ALIASES,
)

CARD = EntryKind(
    {
        "id": Field(TextKind(pattern=CARD_ID, what="a card id"), "Its name", required=True),
        "name": Field(TextKind(limit=200), "Name for people", required=True),
        "description": Field(TextKind(limit=1_000), "What it tells, in a line", required=True),
        "triggers": Field(TRIGGERS, "When it is called for", required=True),
        "priority": Field(WholeKind(0, MAX_PRIORITY), "Higher ones come first"),
        "token_budget": Field(
            WholeKind(1, MAX_CARD_TOKENS), "The most tokens that its text may have"
        ),
        "capabilities": Field(
            DistinctKind(TextKind(pattern=CAPABILITY_NAME, what="a capability name"), single=True),
            "Only holders of one of these capabilities are given it",
        ),
        "language": Field(
            TextKind(pattern=r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", what="a language such as en"),
            "Language of its text",
        ),
        "version": Field(
            TextKind(pattern=r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,31}", what='a version such as "1.2"'),
            "Its version, for people and for the audit",
        ),
        "reference": Field(
            TextKind(pattern=_REFERENCE, what="a Markdown file below the folder, or an https URL"),
            "Its reference document, which awareness:read answers on demand, or a URL",
        ),
    },
    lambda values, _node: values,
    "a card",
    CARD_ALIASES,
)


def read_card_file(raw: bytes, file: str, source: CardSource, report: Report) -> Card | None:
    """Read a card; None after a problem was reported."""
    own = Report()
    found = _card(raw, file, source, own)
    report.extend(own.problems)
    return None if own.count else found


def _card(raw: bytes, file: str, source: CardSource, report: Report) -> Card | None:
    if len(raw) > MAX_CARD_BYTES:
        message = f"the card has more than {MAX_CARD_BYTES:,} bytes"
        report.add(Place(file), "too_large", message, "a card is a few sentences: shorten it")
        return None
    markdown, problems = read_markdown(raw, file, required=True)
    report.extend(problems)
    if problems:
        return None
    values = _values(markdown, file, report)
    text = markdown.body.strip()
    if not text:
        hint = "write below the second '---' what an agent should know"
        report.add(Place(file), "empty_file", "the card has no text", hint)
    if report.count or values is None:
        return None
    triggers = Triggers(**values.pop("triggers"))
    return Card(text=text, triggers=triggers, source=source, place=Place(file), **values)


def _values(markdown: Markdown, file: str, report: Report) -> dict[str, Any] | None:
    if markdown.keys is None:
        report.add(Place(file), "missing_key", "a card needs the key 'id'", "see remit schema card")
        return None
    values = CARD.read(markdown.keys, report)
    if not isinstance(values, dict):
        return None
    for name in ("name", "description"):
        values[name] = re.sub(r"\s+", " ", values[name]).strip()
        if not values[name]:
            report.add(markdown.keys.place, "missing_key", f"a card needs the key {name!r}")
    return values
