"""A made-up fleet of a stated size, the same in every run."""

import random

from remit.errors import Place
from remit.model.capability import Capability
from remit.model.composition import Composition, Flag, Part
from remit.model.event import EventSpec
from remit.model.launch import Template
from remit.model.limits import NO_LIMITS, Limits
from remit.model.names import EventPattern, PlacedPattern, Ref, parse_event_name
from remit.policy.catalogue import Definitions

_SEED = 7
_NAMESPACES = 50
_TIERS = 4


def event_specs(count: int) -> list[EventSpec]:
    """Events in fifty namespaces; one in a hundred must be named."""
    return [
        EventSpec(
            name=parse_event_name(f"area{at % _NAMESPACES}:action_{at // _NAMESPACES}"),
            wildcard=at % 97 != 0,
        )
        for at in range(count)
    ]


def definitions(events: list[EventSpec], capabilities: int, profiles: int) -> Definitions:
    """Capabilities that require each other in four tiers, and profiles that build on each other."""
    dice = random.Random(_SEED)  # noqa: S311 - a benchmark, not a secret
    names = [str(spec.name) for spec in events]
    made = [_capability(at, capabilities, names, dice) for at in range(capabilities)]
    return Definitions(
        tuple(made), tuple(_profile(at, made, names, dice) for at in range(profiles))
    )


def _capability(at: int, count: int, names: list[str], dice: random.Random) -> Capability:
    size = max(1, count // _TIERS)
    tier = at // size
    below = range((tier - 1) * size, tier * size) if tier else range(0)
    texts = [f"area{at % _NAMESPACES}:*", *dice.sample(names, 8)]
    place = Place("capabilities.yaml", at + 1)
    return Capability(
        id=f"capability_{at}",
        place=place,
        description=f"Capability {at}",
        event_patterns=tuple(PlacedPattern(EventPattern.parse(t), place) for t in texts),
        requires=tuple(
            Ref(f"capability_{i}", place) for i in dice.sample(below, min(2, len(below)))
        ),
        claude_tools=(Ref("WebFetch", place),) if at % 10 == 0 else (),
        always_included=at == 0,
        resource_limits=Limits(max_children=at + 1) if at % 10 == 0 else NO_LIMITS,
    )


def _profile(at: int, made: list[Capability], names: list[str], dice: random.Random) -> Composition:
    place = Place(f"compositions/profile_{at}.yaml")
    chosen = dice.sample(made, min(6, len(made)))
    denied = dice.sample(names, 2)
    if at % 5 == 0:
        denied.append(f"area{at % _NAMESPACES}:action_1*")
    part = Part(
        flags=tuple(Flag(capability.id, on=True, place=place) for capability in chosen),
        allowed=tuple(Template(name, place) for name in dice.sample(names, 3)),
        disallowed=tuple(Template(text, place) for text in denied),
    )
    parents = (Ref(f"profile_{at // 2}", place),) if at % 4 == 1 and at > 1 else ()
    return Composition(name=f"profile_{at}", place=place, extends=parents, parts=(part,))
