"""`max_effect`: how much the events of a profile may do at the most.

It takes away last, like a denial: whoever gives an event, one that does more is not left, and what
an agent is given beside its profile lies under the same ceiling. Nobody states the effect of a
model tool, or of an event without a handler, and what is not stated never qualifies.
"""

from collections.abc import Iterable

import msgspec

from remit.model.event import PlacedEffect, Reason
from remit.model.names import EventName, EventPattern
from remit.model.place import Problem
from remit.policy.catalogue import Catalogue
from remit.policy.layers import Layer


class Caught(msgspec.Struct, frozen=True):
    """The patterns by which a refused name is answered, whether or not there is such an event."""

    waiting: tuple[EventPattern, ...]
    """Reviews that would bring something."""
    capped: tuple[EventPattern, ...] = ()
    """What gives something of which the ceiling takes a part."""

    def reason(self, event: EventName) -> Reason:
        """Why a name is refused that nothing denies; as in `decide.refusal`."""
        if any(pattern.covers(event) for pattern in self.waiting):
            return "review_pending"
        return "explicit_deny" if any(p.covers(event) for p in self.capped) else "no_grant"


def beyond(catalogue: Catalogue, ceiling: PlacedEffect | None) -> int:
    """The bits of all events that a ceiling takes away."""
    universe = catalogue.universe
    return universe.everything & ~universe.at_most[ceiling.effect] if ceiling else 0


def lets_through(catalogue: Catalogue, ceiling: PlacedEffect | None, event: str) -> bool:
    """Tell whether an event does no more than a ceiling lets it."""
    return not beyond(catalogue, ceiling) & catalogue.universe.bits_of([event])


def caught(
    catalogue: Catalogue,
    ceiling: PlacedEffect | None,
    *,
    giving: Iterable[EventPattern],
    waiting: tuple[EventPattern, ...],
) -> Caught:
    """Sort the patterns of a profile by how a name under them is refused.

    A review that brings nothing under the ceiling is none to wait for. A wildcard stands for names
    that exist and names that do not; so a refusal tells neither apart.
    """
    if ceiling is None:
        return Caught(waiting)
    universe, kept = catalogue.universe, catalogue.universe.at_most[ceiling.effect]
    hopeless = [p for p in waiting if (bits := universe.granted_by(p)) and not bits & kept]
    cut = (p for p in giving if not (p.exact and universe.granted_by(p) & kept))
    return Caught(
        tuple(pattern for pattern in waiting if pattern not in hopeless),
        tuple(dict.fromkeys((*cut, *hopeless))),
    )


def excess_of(catalogue: Catalogue, ceiling: PlacedEffect, event: str) -> str:
    """Why an event that exists is not left under a ceiling."""
    effect = catalogue.universe.specs[event].effect
    what = "nobody states what it does" if effect is None else f"its effect is {effect}"
    return f"{what}, and only {ceiling.effect!r} and less is let through"


def way_out(catalogue: Catalogue, event: str) -> str:
    """The ceiling under which an event would be left; empty when none would do."""
    effect = catalogue.universe.specs[event].effect
    return f"'max_effect: {effect}' there would let it through" if effect else ""


def ceiling_warnings(catalogue: Catalogue, layer: Layer) -> list[Problem]:
    """Entries of tool lists of which the ceiling leaves nothing."""
    ceiling = layer.max_effect
    if ceiling is None:
        return []
    universe, problems = catalogue.universe, []
    for entry in layer.allowed:
        bits = universe.granted_by(entry.pattern) if entry.pattern else 0
        if entry.model_tool or (bits and not bits & universe.at_most[ceiling.effect]):
            message = f"{entry.text!r} is not given: {ceiling} lets nothing of it through"
            hint = f"take it out, or raise what {ceiling.place} says"
            problems.append(
                Problem(entry.place, "above_max_effect", message, hint, severity="warning")
            )
    return problems
