"""What would allow an event that is not allowed: the narrowest capability, and the line to add."""

from collections.abc import Container

import msgspec

from remit.model.names import nearest
from remit.policy.catalogue import Catalogue

_NEAR = 5


class NearMiss(msgspec.Struct, frozen=True):
    """An event, or one of a similar name, and the narrowest capability that gives it."""

    event: str
    capability: str | None


class Repair(msgspec.Struct, frozen=True):
    """The one line that would allow an event."""

    line: str
    file: str
    capability: str | None = None
    events: int = 1
    """How many events that line gives in all."""
    review: str | None = None
    """What an operator then has to approve, as `profile/capability`; None: nothing."""


def near_misses(catalogue: Catalogue, profile: str, event: str) -> tuple[NearMiss, ...]:
    """The narrowest capability that gives an event; when there is no such event, its neighbours."""
    found = [event]
    if event not in catalogue.universe.index:
        found = nearest(event, catalogue.universe.names, count=_NEAR)
    misses = (NearMiss(name, _best_giver(catalogue, profile, name)) for name in found)
    return tuple(miss for miss in misses if miss.capability or miss.event != event)


def repair_of(catalogue: Catalogue, profile: str, event: str) -> Repair:
    """The narrowest capability that gives an event, else the event itself in a tool list."""
    composition = catalogue.compositions.get(profile)
    file = composition.place.file if composition else ""
    found = _best_giver(catalogue, profile, event)
    if found is None:
        return Repair(f"additional_tools: [{event}]", file)
    size = given_bits(catalogue, found).bit_count()
    review = next((f"{profile}/{one}" for one in _reviews(catalogue, profile, found)), None)
    return Repair(f"capabilities: {{{found}: true}}", file, found, size, review)


def _best_giver(catalogue: Catalogue, profile: str, event: str) -> str | None:
    """The narrowest one that gives it at once; only where there is none, one to be reviewed."""
    at_once = [name for name in catalogue.closures if not _reviews(catalogue, profile, name)]
    found = narrowest_giver(catalogue, event, among=frozenset(at_once))
    return found or narrowest_giver(catalogue, event)


def _reviews(catalogue: Catalogue, profile: str, capability: str) -> list[str]:
    """What an operator would have to approve before a capability gives all that it could."""
    members = catalogue.closures[capability]
    return [name for name in members if catalogue.needs_review(profile, name)]


def givers_of(catalogue: Catalogue, event: str) -> list[str]:
    """All capabilities that give an event, by themselves or by what they require; sorted.

    This is `questions.gives`, looked at from the other side.
    """
    bit = bit_of(catalogue, event)
    return sorted(name for name in catalogue.closures if given_bits(catalogue, name) & bit)


def narrowest_giver(
    catalogue: Catalogue, event: str, *, among: Container[str] | None = None
) -> str | None:
    """Of all capabilities that give an event the one that gives least beside it, or None."""
    givers = givers_of(catalogue, event)
    return min(
        givers if among is None else [name for name in givers if name in among],
        key=lambda name: (given_bits(catalogue, name).bit_count(), name),
        default=None,
    )


def given_bits(catalogue: Catalogue, capability: str) -> int:
    """All that a capability gives, with what it requires, as bits."""
    bits = 0
    for member in catalogue.closures[capability]:
        bits |= catalogue.own_events[member]
    return bits


def bit_of(catalogue: Catalogue, event: str) -> int:
    """An event, by any of its names, as a bit; 0 when there is none."""
    return catalogue.universe.bits_of([catalogue.universe.canonical(event)])
