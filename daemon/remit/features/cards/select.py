"""Which cards a conversation is given: filters, then score, threshold, priority, budget.

Promises, each held by a property test:
- what is injected never has more tokens than the budget, and each card no more than it says itself;
- a card that is bound to capabilities is neither injected for somebody who holds none of them nor
  named to them;
- the same input gives the same order: forced ones, then by priority, relevance and id.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from remit.config.settings.table import Settings
from remit.features.cards.card import parse_day_span
from remit.features.cards.ready_card import ReadyCard
from remit.features.cards.scorers import DEFAULT, BatchScorer, CardScorer, checked
from remit.features.cards.views import Position
from remit.features.cards.words import WINDOW, KeywordMatch, Score, Window

DEFAULT_BUDGET = 1_500
SURE_PRIORITY, _SIGNALS = 50, 2
"""Cards of a lower priority need that many signals, which share no word."""
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
    "one_signal",
    "over_own_budget",
    "over_budget",
    "scorer_failed",
]
Mode = Literal["on", "monitor", "off", "stopped", "held_back"]
"""As configured; or stopped by the switch; or the session is not in the rollout."""


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


class CardsConfig(msgspec.Struct, frozen=True, kw_only=True):
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
    log_level: Literal["none", "summary", "detailed"] = "summary"

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


class InjectedCard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A card that is given, and why."""

    id: str
    name: str
    relevance: float
    tokens: int
    text: str
    version: str = ""
    matches: tuple[KeywordMatch, ...] = ()
    forced: bool = False


class SkippedCard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A card that the caller may know of and is not given."""

    id: str
    reason: SkipReason
    relevance: float = 0.0
    threshold: float = 0.0
    tokens: int = 0
    matches: tuple[KeywordMatch, ...] = ()


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it; injected ones in the order of injection, skipped ones by id."""

    injected: tuple[InjectedCard, ...] = ()
    skipped: tuple[SkippedCard, ...] = ()
    total_tokens: int = 0
    budget: int = 0
    truncated: bool = False
    """Tells whether a card that was called for found no room."""


class CardAnswer(msgspec.Struct, frozen=True, kw_only=True):
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


class _Candidate(msgspec.Struct, frozen=True):
    ready: ReadyCard
    score: Score
    forced: bool


def select(  # noqa: PLR0913 - what, for whom, by which rules
    cards: Sequence[ReadyCard],
    messages: Sequence[str],
    situation: Situation,
    scorer: CardScorer,
    options: SelectOptions = SelectOptions(),  # noqa: B008 - frozen
    *,
    budget: int | None = None,
    overhead: int = 0,
) -> Selection:
    """Choose among cards; `messages` is the whole conversation, oldest first.

    Args:
        cards: those of the library, quarantined ones too, so that they can be named.
        messages: the whole conversation, oldest first; the last ones are looked at.
        situation: for whom and when.
        scorer: how relevance is found.
        options: what the configuration says.
        budget: tokens, instead of those that the options give a conversation of this length.
        overhead: tokens that are spent beside the cards as soon as one is injected.
    """
    room = budget_for(options, len(messages)) if budget is None else max(0, budget)
    if not options.enabled:
        return Selection(budget=room)
    seen = [one for one in cards if _may_know(one, situation)]
    filtered = _Filtered(seen, situation, options)
    window = Window(messages, last=options.window)
    called, unfit = _scored(filtered, window, scorer, options)
    called.sort(key=_order)
    return _packed(called, [*filtered.skipped, *unfit], room, overhead)


def _may_know(ready: ReadyCard, situation: Situation) -> bool:
    bound = ready.card.capabilities
    return not bound or not situation.capabilities.isdisjoint(bound)


class _Filtered:
    """Cards that are looked at further, and those that are not."""

    def __init__(
        self, cards: Iterable[ReadyCard], situation: Situation, options: SelectOptions
    ) -> None:
        self.kept: list[ReadyCard] = []
        self.skipped: list[SkippedCard] = []
        for ready in cards:
            reason = _unfit(ready, situation, options)
            if reason is None:
                self.kept.append(ready)
            else:
                tokens = ready.tokens if reason == "over_own_budget" else 0
                self.skipped.append(SkippedCard(id=ready.card.id, reason=reason, tokens=tokens))


def _unfit(ready: ReadyCard, situation: Situation, options: SelectOptions) -> SkipReason | None:
    card = ready.card
    if card.id in options.exclude:
        return "excluded"
    if ready.is_quarantined:
        return "quarantined"
    if ready.tokens > card.token_budget:
        return "over_own_budget"
    if card.id in options.force_include:
        return None
    return _wrong_time(ready, situation)


def _wrong_time(ready: ReadyCard, situation: Situation) -> SkipReason | None:
    triggers = ready.card.triggers
    if triggers.session_types and situation.session_type not in triggers.session_types:
        return "session_type"
    if triggers.user_tier and situation.user_tier not in triggers.user_tier:
        return "user_tier"
    if triggers.environment and situation.environment not in triggers.environment:
        return "environment"
    if triggers.time_of_day and not _is_time(triggers.time_of_day, situation.minute_of_day):
        return "time_of_day"
    return None


def _is_time(spans: Iterable[str], minute: int) -> bool:
    parsed = (parse_day_span(text) for text in spans)
    return any(span is not None and span.covers(minute) for span in parsed)


def _scored(
    filtered: _Filtered, window: Window, scorer: CardScorer, options: SelectOptions
) -> tuple[list[_Candidate], list[SkippedCard]]:
    called: list[_Candidate] = []
    unfit: list[SkippedCard] = []
    scores = _scores(filtered.kept, window, scorer)
    for ready, score in zip(filtered.kept, scores, strict=True):
        card = ready.card
        forced = card.id in options.force_include
        threshold = _threshold(ready, options)
        reason = None if forced else _unsure(ready, score, threshold)
        if reason is None:
            called.append(_Candidate(ready, score or Score(value=0.0), forced))
        elif score is None:
            unfit.append(SkippedCard(id=card.id, reason=reason))
        else:
            unfit.append(
                SkippedCard(
                    id=card.id,
                    reason=reason,
                    relevance=score.value,
                    threshold=threshold,
                    matches=score.matches,
                )
            )
    return called, unfit


def _unsure(ready: ReadyCard, score: Score | None, threshold: float) -> SkipReason | None:
    if score is None:
        return "scorer_failed"
    if score.value < threshold:
        return "below_threshold" if score.value else "no_match"
    is_little = score.signals is not None and score.signals < _SIGNALS
    return "one_signal" if is_little and ready.card.priority < SURE_PRIORITY else None


def _threshold(ready: ReadyCard, options: SelectOptions) -> float:
    own = ready.card.triggers.confidence_threshold
    general = own if options.threshold is None else options.threshold
    return options.thresholds.get(ready.card.id, general)


def _scores(
    cards: Sequence[ReadyCard], window: Window, scorer: CardScorer
) -> Sequence[Score | None]:
    """The score of each card; None where the scorer failed: one card must not cost the others."""
    if isinstance(scorer, BatchScorer):
        try:
            found = [checked(one) for one in scorer.score_all([c.card for c in cards], window)]
        except Exception:  # a plug-in may raise anything
            return [None] * len(cards)
        return found if len(found) == len(cards) else [None] * len(cards)
    return [_score(one, window, scorer) for one in cards]


def _score(ready: ReadyCard, window: Window, scorer: CardScorer) -> Score | None:
    try:
        return checked(scorer.score(ready.card, window))
    except Exception:  # a plug-in may raise anything
        return None


def _order(candidate: _Candidate) -> tuple[bool, int, float, str]:
    card = candidate.ready.card
    return (not candidate.forced, -card.priority, -candidate.score.value, card.id)


def _packed(
    called: Sequence[_Candidate], skipped: list[SkippedCard], room: int, overhead: int
) -> Selection:
    """Take what fits, in order; one that is too large does not stop those behind it."""
    injected: list[InjectedCard] = []
    used = overhead
    truncated = False
    for one in called:
        card, tokens = one.ready.card, one.ready.tokens
        if used + tokens > room:
            truncated = True
            skipped.append(
                SkippedCard(
                    id=card.id,
                    reason="over_budget",
                    relevance=one.score.value,
                    tokens=tokens,
                    matches=one.score.matches,
                )
            )
            continue
        used += tokens
        injected.append(
            InjectedCard(
                id=card.id,
                name=card.name,
                relevance=one.score.value,
                tokens=tokens,
                text=card.text,
                version=card.version,
                matches=one.score.matches,
                forced=one.forced,
            )
        )
    return Selection(
        injected=tuple(injected),
        skipped=tuple(sorted(skipped, key=lambda skip: skip.id)),
        total_tokens=used if injected else 0,
        budget=room,
        truncated=truncated,
    )


def cards_config(settings: Settings) -> CardsConfig:
    """What the settings say, in the words of the runtime."""
    return CardsConfig(
        mode=settings.awareness,
        window=settings.awareness_window,
        tokens=settings.awareness_tokens,
        most_tokens=settings.awareness_most_tokens,
        scorer=settings.awareness_scorer,
        second_scorer=settings.awareness_second_scorer,
        second_share=settings.awareness_second_share,
        force=frozenset(settings.awareness_force),
        exclude=frozenset(settings.awareness_exclude),
        thresholds=_numbers(settings.awareness_thresholds),
        rollout=_numbers(settings.awareness_rollout),
        kill_share=settings.awareness_kill_share,
        position=settings.awareness_position,
        log_level=settings.awareness_log_level,
    )


def _numbers(pairs: Iterable[str]) -> dict[str, float]:
    return {name: float(number) for name, _, number in (pair.partition("=") for pair in pairs)}


def budget_for(options: SelectOptions, conversation_length: int) -> int:
    """The tokens of a conversation of so many messages.

    budget + (most - budget) * min(1, (messages - window) / (grown_at - window)), rounded down; as
    long as all messages are looked at, it is the budget.
    """
    most = max(options.most, options.budget)
    span = max(1, options.grown_at - options.window)
    share = min(1.0, max(0, conversation_length - options.window) / span)
    return options.budget + int((most - options.budget) * share)
