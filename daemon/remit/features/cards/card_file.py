"""A card: Markdown with strict frontmatter. One mistake anywhere and the whole card is left out.

A card whose `capabilities` were misspelt and passed over would be shown to everybody.
"""

import re
from typing import Any

from remit.config.definitions.capabilities import CAPABILITY_NAME
from remit.config.strict.frontmatter import Markdown, read_markdown
from remit.config.strict.kinds import Field, Report, TextKind, WholeKind
from remit.config.strict.more_kinds import (
    MAX_KEYWORDS,
    DaySpanKind,
    DistinctKind,
    KeywordKind,
    ShareKind,
)
from remit.features.skills.extension_file import EntryKind
from remit.model.card import MAX_CARD_TOKENS, MAX_PRIORITY, Card, CardSource, Triggers
from remit.model.place import Place

MAX_CARD_BYTES = 50 * 1024
CARD_ID = r"[a-z0-9][a-z0-9_.-]{0,63}"
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
