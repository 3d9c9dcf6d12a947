"""What awareness is configured with, asked and answers."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from remit.features.cards.inject import Position
from remit.features.cards.scorers import DEFAULT
from remit.features.cards.selection import DEFAULT_BUDGET, Selection, SelectOptions
from remit.model.card import Card

Mode = Literal["on", "monitor", "off", "stopped", "held_back"]
"""As configured; or stopped by the switch; or the session is not in the rollout."""


class AwarenessConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator says."""

    mode: Literal["on", "monitor", "off"] = "on"
    window: int = 5
    tokens: int = DEFAULT_BUDGET
    most_tokens: int = 0
    scorer: str = DEFAULT
    second_scorer: str = ""
    second_share: float = 0.5
    force: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = {}
    rollout: Mapping[str, float] = {}
    kill_share: float = 0.8
    position: Position = "after_agents"

    def options(self) -> SelectOptions:
        """What of this is about selection."""
        return SelectOptions(
            budget=self.tokens,
            most=self.most_tokens,
            window=self.window,
            thresholds=self.thresholds,
            force_include=self.force,
            exclude=self.exclude,
        )


class Caller(msgspec.Struct, frozen=True):
    """Who asks, and what a card may be bound to that they hold."""

    principal: str
    capabilities: frozenset[str] = frozenset()
    everything: bool = False
    decision: str = ""
    revision: int = 0

    def may_have(self, card: Card) -> bool:
        """Tell whether a card may be given to them, and named to them at all."""
        bound = card.capabilities
        return not bound or self.everything or not self.capabilities.isdisjoint(bound)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that cards are chosen for."""

    messages: tuple[str, ...]
    session_type: str = "main"
    session: str = ""
    token_budget: int | None = None
    user_tier: str = ""
    environment: str = ""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one question."""

    mode: Mode
    selection: Selection = Selection()
    scorer: str = ""

    def record(self) -> dict[str, Any]:
        """The shape that callers are answered in."""
        found = self.selection
        return {
            "injected": [
                {"id": one.id, "relevance": round(one.relevance, 4), "tokens": one.tokens}
                for one in found.injected
            ],
            "skipped": [{"id": one.id, "reason": one.reason} for one in found.skipped],
            "total_tokens": found.total_tokens,
            "truncated": found.truncated,
            "mode": self.mode,
            "scorer": self.scorer,
        }
