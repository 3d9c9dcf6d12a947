"""A card: Markdown that is put before an agent when its conversation calls for it."""

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
