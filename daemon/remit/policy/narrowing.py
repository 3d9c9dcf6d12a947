"""Grants made smaller: to what does less, and to what another grant allows."""

import msgspec

from remit.model.event import Effect
from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue


def narrow_effect(catalogue: Catalogue, grant: Grant, ceiling: Effect) -> Grant:
    """Keep only the events that do no more than `ceiling`.

    Nobody states the effect of a model tool, and what is not stated never qualifies: none is kept.
    """
    universe = catalogue.universe
    kept = frozenset(universe.names_in(grant.bits & universe.at_most[ceiling]))
    narrowed = _with_events(catalogue, grant, kept)
    return msgspec.structs.replace(narrowed, claude_tools=frozenset())


def confine(catalogue: Catalogue, grant: Grant, ceiling: Grant) -> Grant:
    """Keep a grant under another one: the parent ceiling of a child."""
    confined = _with_events(catalogue, grant, grant.events & ceiling.events)
    return msgspec.structs.replace(
        confined,
        claude_tools=grant.claude_tools & ceiling.claude_tools,
        limits=grant.limits.smallest(ceiling.limits),
        # What the parent may do only with an approval, nobody it spawns does without one.
        approval_required=confined.approval_required
        | (ceiling.approval_required & confined.events),
    )


def _with_events(catalogue: Catalogue, grant: Grant, events: frozenset[str]) -> Grant:
    return msgspec.structs.replace(
        grant,
        events=events,
        bits=catalogue.universe.bits_of(events),
        exposed=grant.exposed & events,
        pinned=grant.pinned & events,
        approval_required=grant.approval_required & events,
    )
