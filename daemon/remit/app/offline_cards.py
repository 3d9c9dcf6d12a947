"""Questions about cards without a daemon: the files as they are, and nothing approved."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from remit.app.workbench import open_workbench
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, NotFoundError
from remit.features.cards.library import CardLibrary, CardSet, configured_roots
from remit.features.cards.ready_card import ReadyCard
from remit.features.cards.scorers import CardScorer, configured_scorers, token_count
from remit.features.cards.select import Selection, Situation, cards_config, select
from remit.features.cards.views import card_entry, card_state, rendered, unbound
from remit.features.cards.words import Window
from remit.model.names import did_you_mean


def read_cards(settings: Settings) -> CardSet:
    """Every card of the configured directories."""
    return CardLibrary(configured_roots(settings), count=token_count(settings)).load()


def check_cards(settings: Settings) -> CardSet:
    """The same, held against the capabilities of the definitions; those may have mistakes too."""
    found = read_cards(settings)
    try:
        known = open_workbench(settings).catalogue.capabilities
    except DefinitionError:  # remit check shows these
        return found
    problems = (*found.problems, *unbound(found, known))
    return msgspec.structs.replace(found, problems=problems)


def describe_cards(settings: Settings, found: CardSet | None = None) -> dict[str, Any]:
    """The same shape that a daemon answers in."""
    found = found or check_cards(settings)
    usable = [one for one in found.cards if not one.is_quarantined]
    return {
        "items": [card_entry(one, everything=True) for one in usable],
        "total": len(usable),
        "next": None,
        "mode": settings.awareness,
        **card_state(found),
    }


def try_cards(
    settings: Settings, messages: Sequence[str], *, session_type: str, scorer: str | None
) -> dict[str, Any]:
    """How every card fares with a conversation, the most relevant first.

    Raises:
        NotFoundError: there is no such scorer.
    """
    found = read_cards(settings)
    chosen = _scorer(settings, scorer or settings.awareness_scorer)
    now = datetime.now().astimezone()
    held = frozenset(name for one in found.cards for name in one.card.capabilities)
    situation = Situation(
        session_type=session_type, capabilities=held, minute_of_day=now.hour * 60 + now.minute
    )
    options = cards_config(settings).options()
    overhead = token_count(settings)(rendered([]))
    selection = select(found.cards, messages, situation, chosen, options, overhead=overhead)
    window = Window(messages, last=options.window)
    rows = [_row(one, chosen, window, selection, options.thresholds) for one in found.cards]
    return {
        "scorer": chosen.name,
        "cards": sorted(rows, key=lambda row: (-row["relevance"], row["id"])),
        "total_tokens": selection.total_tokens,
        "budget": selection.budget,
        "problems": [problem.to_json() for problem in found.problems],
    }


def _scorer(settings: Settings, name: str) -> CardScorer:
    known = configured_scorers(settings).by_name
    if name not in known:
        hint = did_you_mean(name, known) or f"there are {', '.join(sorted(known))}"
        raise NotFoundError(f"there is no scorer {name!r}", hint=hint)
    return known[name]


def _row(
    ready: ReadyCard,
    scorer: CardScorer,
    window: Window,
    selection: Selection,
    thresholds: Any,
) -> dict[str, Any]:
    card = ready.card
    try:
        score = scorer.score(card, window)
        relevance, matches = score.value, score.matches
    except Exception:
        relevance, matches = 0.0, ()
    skipped = {one.id: one.reason for one in selection.skipped}
    return {
        "id": card.id,
        "relevance": round(relevance, 4),
        "threshold": thresholds.get(card.id, card.triggers.confidence_threshold),
        "verdict": skipped.get(card.id, "injected"),
        "tokens": ready.tokens,
        "matches": [
            {"keyword": one.keyword, "count": one.count, "weight": round(one.weight, 4)}
            for one in matches
        ],
        "missed": [
            word for word in card.triggers.keywords if word not in {m.keyword for m in matches}
        ],
    }
