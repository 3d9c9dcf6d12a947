"""What keeps an event from a holder beside denials: what looks as if it gave the event."""

from collections.abc import Iterator
from typing import Any

import msgspec

from remit.model.names import EventName, EventPattern
from remit.model.place import Place
from remit.policy.catalogue import Catalogue
from remit.policy.ceiling import excess_of, lets_through, way_out
from remit.policy.layers import Layer
from remit.policy.remedies import bit_of
from remit.policy.resolve import chosen


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


def obstacles_to(catalogue: Catalogue, layer: Layer, event: str) -> tuple[Obstacle, ...]:
    """What looks as if it gave an event that exists, and does not."""
    found = [*_idle(catalogue, layer, event), *_too_wide(catalogue, layer, event)]
    if layer.max_effect and not lets_through(catalogue, layer.max_effect, event):
        message = excess_of(catalogue, layer.max_effect, event)
        found.insert(
            0, Obstacle("max_effect", message, way_out(catalogue, event), layer.max_effect.place)
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
        for name in chosen(catalogue, layer)
        for member in catalogue.closures[name]
        for placed in catalogue.capabilities[member].event_patterns or ()
        if not placed.pattern.exact
    ]
    for text, place in patterns:
        if EventPattern.parse(text).covers(EventName(event)):
            message = f"the pattern {text!r} does not give it: this event must be named"
            yield Obstacle("wildcard", message, f"name it: {event}", place)
