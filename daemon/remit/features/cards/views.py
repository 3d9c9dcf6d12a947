"""Cards as they are shown to callers, in the daemon and without one."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from remit.model.names import did_you_mean
from remit.model.place import Problem

if TYPE_CHECKING:
    from remit.features.cards.folder import ReadyCard
    from remit.features.cards.library import CardSet

MOST_REASONS = 10
MOST_SUSPICIOUS = 100
"""Suspicious cards that are told at once: an answer has to fit into a message."""


def card_entry(ready: "ReadyCard", *, everything: bool) -> dict[str, Any]:
    """A card without its text; where it stands and whom it is for is not everybody's business."""
    card = ready.card
    shown = {
        "id": card.id,
        "name": card.name,
        "description": card.description,
        "priority": card.priority,
        "source": card.source,
        "tokens": ready.tokens,
        "triggers": msgspec.to_builtins(card.triggers),
    }
    if everything:
        shown |= {"capabilities": list(card.capabilities), "file": card.place.file}
    return shown


def unbound(found: "CardSet", known: Collection[str]) -> list[Problem]:
    """Cards that are bound to capabilities which nobody can hold: nobody is given them."""
    return [
        Problem(
            one.card.place,
            "unknown_capability",
            f"the card {one.card.id!r} is bound to {name!r}, and there is no such capability",
            did_you_mean(name, known),
            severity="warning",
        )
        for one in found.cards
        for name in one.card.capabilities
        if name not in known
    ][:MOST_SUSPICIOUS]


def card_state(found: "CardSet", capabilities: Collection[str] | None = None) -> dict[str, Any]:
    """What is wrong with cards, for those who see everything."""
    lost = () if capabilities is None else unbound(found, capabilities)
    return {
        "quarantined": [
            {
                "id": one.card.id,
                "file": one.card.place.file,
                "reasons": list(one.reasons)[:MOST_REASONS],
            }
            for one in found.quarantined[:MOST_SUSPICIOUS]
        ],
        "problems": [problem.to_json() for problem in (*found.problems, *lost)],
        "shadowed": [str(one) for one in found.shadowed],
    }
