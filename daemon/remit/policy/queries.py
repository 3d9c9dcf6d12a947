"""Questions to a catalogue: what a capability gives, what gives an event, and what keeps it away.

A near miss is the narrowest capability that gives an event, or one of a similar name; a repair is
the one line that would allow it; an obstacle looks as if it gave the event, and does not.
"""

from collections.abc import Container, Iterator
from typing import Any

import msgspec

from remit.errors import NotFoundError, Place
from remit.model.limits import NO_LIMITS, PlacedEffect
from remit.model.names import EventName, EventPattern, did_you_mean, nearest
from remit.policy.catalogue import Catalogue
from remit.policy.layers import Layer

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


class Obstacle(msgspec.Struct, frozen=True):
    """Something that keeps an event from somebody, beside a rule that denies it."""

    code: str
    message: str
    hint: str = ""
    place: Place | None = None

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        found: dict[str, Any] = {"code": self.code, "message": self.message, "hint": self.hint}
        if self.place is not None:
            found |= {
                "file": self.place.file,
                "line": self.place.line,
                "column": self.place.column,
            }
        return found


def capability_id(catalogue: Catalogue, name: str) -> str:
    """The canonical id of a capability.

    Raises:
        NotFoundError: no capability has that name.
    """
    if name not in catalogue.names:
        hint = did_you_mean(name, catalogue.capabilities)
        raise NotFoundError(f"there is no capability {name!r}", hint=hint)
    return catalogue.names[name]


def gives(catalogue: Catalogue, name: str) -> dict[str, Any]:
    """Everything a capability gives, with all it requires."""
    found = capability_id(catalogue, name)
    definition = catalogue.capabilities[found]
    closure = catalogue.closures[found]
    bits = 0
    tools: set[str] = set()
    limits = NO_LIMITS
    for member in closure:
        bits |= catalogue.own_events[member]
        tools.update(ref.name for ref in catalogue.capabilities[member].claude_tools)
        limits = limits.smallest(catalogue.capabilities[member].resource_limits)
    return {
        "capability": found,
        "description": definition.description,
        "status": definition.status,
        "events": catalogue.universe.names_in(bits),
        "own_events": catalogue.universe.names_in(catalogue.own_events[found]),
        "claude_tools": sorted(tools),
        "requires": [member for member in closure if member != found],
        "limits": limits.to_json(),
        **said(system_prompt=definition.system_prompt, config_schema=definition.config_schema),
        "security_review_required": definition.security_review_required,
    }


def said(**fields: Any) -> dict[str, Any]:
    """The fields that say something: what nobody wrote is absent, and not empty."""
    return {name: value for name, value in fields.items() if value not in (None, "")}


def givers_of(catalogue: Catalogue, event: str) -> list[str]:
    """All capabilities that give an event, by themselves or by what they require; sorted.

    This is `gives`, looked at from the other side.
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


def obstacles_to(catalogue: Catalogue, layer: Layer, event: str) -> tuple[Obstacle, ...]:
    """What looks as if it gave an event that exists, and does not."""
    found = [*_idle(catalogue, layer, event), *_too_wide(catalogue, layer, event)]
    if layer.max_effect and not catalogue.universe.lets_through(layer.max_effect, event):
        message = _excess_of(catalogue, layer.max_effect, event)
        found.insert(
            0, Obstacle("max_effect", message, _way_out(catalogue, event), layer.max_effect.place)
        )
    return tuple(dict.fromkeys(found))


def _idle(catalogue: Catalogue, layer: Layer, event: str) -> Iterator[Obstacle]:
    """Capabilities that grant nothing: switched on here, or required by what is."""
    bit = bit_of(catalogue, event)
    reached = {name: catalogue.capabilities[name].place for name in catalogue.base}
    reached |= {name: flag.place for name, flag in layer.flags.items() if flag.on}
    waiting = list(reached)
    for name in waiting:  # grows while it is walked
        definition = catalogue.capabilities[name]
        if not definition.is_grantable:
            if catalogue.own_events[name] & bit:
                message = f"{name!r} would give it, but is {definition.status}: it grants nothing"
                yield Obstacle(definition.status, message, "", reached[name])
            continue
        for ref in definition.requires:
            required = catalogue.names[ref.name]
            if required not in reached:
                reached[required] = ref.place
                waiting.append(required)


def _too_wide(catalogue: Catalogue, layer: Layer, event: str) -> Iterator[Obstacle]:
    """Patterns that cover an event which no pattern gives."""
    if catalogue.universe.specs[event].wildcard:
        return
    patterns = [(e.text, e.place) for e in layer.allowed if e.pattern and not e.pattern.exact]
    patterns += [
        (str(placed.pattern), placed.place)
        for name in catalogue.roots(layer.flags)
        for member in catalogue.closures[name]
        for placed in catalogue.capabilities[member].event_patterns or ()
        if not placed.pattern.exact
    ]
    for text, place in patterns:
        if EventPattern.parse(text).covers(EventName(event)):
            message = f"the pattern {text!r} does not give it: this event must be named"
            yield Obstacle("wildcard", message, f"name it: {event}", place)


def _excess_of(catalogue: Catalogue, ceiling: PlacedEffect, event: str) -> str:
    """Why an event that exists is not left under a ceiling."""
    effect = catalogue.universe.specs[event].effect
    what = "nobody states what it does" if effect is None else f"its effect is {effect}"
    return f"{what}, and only {ceiling.effect!r} and less is let through"


def _way_out(catalogue: Catalogue, event: str) -> str:
    """The ceiling under which an event would be left; empty when none would do."""
    effect = catalogue.universe.specs[event].effect
    return f"'max_effect: {effect}' there would let it through" if effect else ""
