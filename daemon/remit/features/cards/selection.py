"""What a selection of cards is asked with, and what comes of it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from remit.features.cards.window import WINDOW
from remit.features.cards.words import Match

DEFAULT_BUDGET = 1_500
_GROWN = 50
"""Messages of a conversation at which the budget has grown to its most."""

SkipReason = Literal[
    "excluded",
    "quarantined",
    "session_type",
    "time_of_day",
    "user_tier",
    "environment",
    "no_match",
    "below_threshold",
    "over_own_budget",
    "over_budget",
    "scorer_failed",
]


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """For whom and when cards are selected."""

    session_type: str = ""
    user_tier: str = ""
    environment: str = ""
    capabilities: frozenset[str] = frozenset()
    """What the caller holds."""
    minute_of_day: int = 0
    """In the daemon's time zone, 0 to 1439."""


class SelectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says about selection."""

    enabled: bool = True
    budget: int = DEFAULT_BUDGET
    most: int = 0
    """Tokens that a long conversation gets; 0: no more than a short one."""
    grown_at: int = _GROWN
    window: int = WINDOW
    threshold: float | None = None
    """Instead of what cards say; None: what each of them says."""
    thresholds: Mapping[str, float] = {}
    """For single cards by id, before anything else."""
    force_include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()


class Injected(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A card that is given, and why."""

    id: str
    name: str
    relevance: float
    tokens: int
    text: str
    matches: tuple[Match, ...] = ()
    forced: bool = False


class Skipped(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A card that the caller may know of and is not given."""

    id: str
    reason: SkipReason
    relevance: float = 0.0
    threshold: float = 0.0
    tokens: int = 0
    matches: tuple[Match, ...] = ()


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it; injected ones in the order of injection, skipped ones by id."""

    injected: tuple[Injected, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    total_tokens: int = 0
    budget: int = 0
    truncated: bool = False
    """Tells whether a card that was called for found no room."""


def budget_for(options: SelectOptions, conversation_length: int) -> int:
    """The tokens of a conversation of so many messages.

    budget + (most - budget) * min(1, (messages - window) / (grown_at - window)), rounded down; as
    long as all messages are looked at, it is the budget.
    """
    most = max(options.most, options.budget)
    span = max(1, options.grown_at - options.window)
    share = min(1.0, max(0, conversation_length - options.window) / span)
    return options.budget + int((most - options.budget) * share)
