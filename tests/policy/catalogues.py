"""Random catalogues, profiles and universes, small enough to collide often.

Everything is drawn as plain data first (`World`), so that a test can also hand it to another
engine or write it as YAML, and then compiled by `compile_world`. Names collide on purpose: events
share prefixes, capabilities share events, profiles share parents.
"""

from collections.abc import Iterable, Sequence

import msgspec
from hypothesis import strategies as st

from remit.errors import Place
from remit.model.capability import Capability, Status
from remit.model.composition import Composition, Flag, Mixin, Part
from remit.model.event import EventSpec, Universe, make_universe
from remit.model.launch import Template
from remit.model.limits import EXPOSURES, Effect, Exposure, Limits, PlacedEffect, PlacedExposure
from remit.model.names import EventPattern, PlacedPattern, Ref, parse_event_name
from remit.policy.catalogue import Catalogue, Definitions
from remit.policy.compile import compile_definitions

EVENTS = ("a:get", "a:set", "a:set_all", "a:x:get", "b:get", "b:set", "ab:get", "c:wipe", "c:run")
NAMED_ONLY = ("a:set_all", "c:wipe")
OLD_NAMES = {"b:fetch": "b:get", "old:run": "c:run"}
WILDCARDS = ("a:*", "a:set*", "a:x:*", "b:*", "c:*", "c:w*", "old:*")
TOOLS = ("Bash", "Read", "WebFetch")
EFFECT_OF: dict[str, Effect | None] = {
    **dict.fromkeys(EVENTS, None),
    "a:get": "read",
    "a:x:get": "read",
    "b:get": "read",
    "c:run": "destructive",
    "a:set": "write",
    "a:set_all": "write",
    "ab:get": "read",
    "c:wipe": "destructive",
}
CAPABILITIES = ("k0", "k1", "k2", "k3", "k4")
PROFILES = ("p0", "p1", "p2", "p3")


class Unit(msgspec.Struct, frozen=True):
    """A capability as plain data; None for patterns means that handlers decide."""

    name: str
    patterns: tuple[str, ...] | None
    requires: tuple[str, ...]
    tools: tuple[str, ...]
    always: bool
    shown: bool
    reviewed: bool
    status: Status
    max_depth: int | None


class Role(msgspec.Struct, frozen=True):
    """A profile as plain data."""

    name: str
    extends: tuple[str, ...]
    mixins: tuple[str, ...]
    flags: tuple[tuple[str, bool], ...]
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    pinned: tuple[str, ...] = ()
    exposure: Exposure | None = None
    max_effect: Effect | None = None


class World(msgspec.Struct, frozen=True):
    """Everything one test case needs."""

    units: tuple[Unit, ...]
    roles: tuple[Role, ...]
    holders: tuple[str | None, ...]
    """For each event the capability that its handler names."""


class _Dice:
    """Choices read from bytes: one draw makes a whole world, and zeros make the plainest one."""

    def __init__(self, raw: bytes) -> None:
        self._bytes = iter(raw)

    def below(self, limit: int) -> int:
        return next(self._bytes) % limit

    def some(self, values: Sequence[str], limit: int) -> tuple[str, ...]:
        """Up to `limit` values; always reads as many bytes, so that shrinking stays aligned."""
        count = self.below(limit + 1)
        picks = [self.below(len(values) or 1) for _ in range(limit)]
        return tuple(dict.fromkeys(values[pick] for pick in picks[:count] if values))


_ENTRIES = (*EVENTS, *OLD_NAMES, *WILDCARDS)
_STATUSES: tuple[Status, ...] = (
    *("available", "available", "available", "available", "deprecated", "retired", "coming_soon"),
)


def _unit(dice: _Dice, at: int) -> Unit:
    """A capability that requires only earlier ones, so that there is no circle."""
    patterns = dice.some(_ENTRIES, 3)
    return Unit(
        name=CAPABILITIES[at],
        patterns=None if dice.below(4) == 1 else patterns,
        requires=dice.some(CAPABILITIES[:at], 2),
        tools=dice.some(TOOLS, 1),
        always=dice.below(6) == 1,
        shown=dice.below(2) == 0,
        reviewed=dice.below(5) == 1,
        status=_STATUSES[dice.below(len(_STATUSES))],
        max_depth=(None, 0, 1, 2)[dice.below(4)],
    )


def _role(dice: _Dice, at: int) -> Role:
    """A profile that builds only on earlier ones."""
    return Role(
        name=PROFILES[at],
        extends=dice.some(PROFILES[:at], 2),
        mixins=dice.some(PROFILES[:at], 1),
        flags=tuple((name, dice.below(4) > 0) for name in dice.some(CAPABILITIES, 4)),
        allowed=dice.some((*_ENTRIES, *TOOLS), 3),
        denied=dice.some((*_ENTRIES, *TOOLS, "*"), 2),
        pinned=dice.some((*_ENTRIES, *TOOLS, "*"), 2),
        exposure=(None, *EXPOSURES)[dice.below(4)],
    )


def _world(raw: bytes) -> World:
    dice = _Dice(raw)
    holders = [dice.some(CAPABILITIES, 1) for _ in EVENTS]
    return World(
        units=tuple(_unit(dice, at) for at in range(len(CAPABILITIES))),
        roles=tuple(_role(dice, at) for at in range(len(PROFILES))),
        holders=tuple(holder[0] if holder else None for holder in holders),
    )


_ENOUGH = 256


def worlds() -> st.SearchStrategy[World]:
    """Whole sets of definitions that load without an error."""
    return st.binary(min_size=_ENOUGH, max_size=_ENOUGH).map(_world)


def universe_of_world(world: World) -> Universe:
    """All events, with the handlers' own word on capabilities, old names and wildcards."""
    return make_universe(
        EventSpec(
            name=parse_event_name(name),
            capability=holder,
            effect=EFFECT_OF[name],
            wildcard=name not in NAMED_ONLY,
            aliases=tuple(parse_event_name(old) for old, new in OLD_NAMES.items() if new == name),
        )
        for name, holder in zip(EVENTS, world.holders, strict=True)
    )


def _place(name: str) -> Place:
    return Place(f"{name}.yaml")


def capability_of(unit: Unit) -> Capability:
    """The model's form of a capability."""
    place = _place(unit.name)
    patterns = (
        None
        if unit.patterns is None
        else tuple(PlacedPattern(EventPattern.parse(text), place) for text in unit.patterns)
    )
    return Capability(
        id=unit.name,
        place=place,
        event_patterns=patterns,
        requires=tuple(Ref(name, place) for name in unit.requires),
        claude_tools=tuple(Ref(name, place) for name in unit.tools),
        always_included=unit.always,
        mcp_tools=unit.shown,
        security_review_required=unit.reviewed,
        status=unit.status,
        resource_limits=Limits(max_depth=unit.max_depth),
    )


def composition_of(role: Role) -> Composition:
    """The model's form of a profile."""
    place = _place(role.name)
    part = Part(
        flags=tuple(Flag(name, on=on, place=place) for name, on in role.flags),
        allowed=tuple(Template(text, place) for text in role.allowed),
        disallowed=tuple(Template(text, place) for text in role.denied),
        pinned=tuple(Template(text, place) for text in role.pinned),
        exposure=PlacedExposure(role.exposure, place) if role.exposure else None,
        max_effect=PlacedEffect(role.max_effect, place) if role.max_effect else None,
    )
    return Composition(
        name=role.name,
        place=place,
        extends=tuple(Ref(name, place) for name in role.extends),
        mixins=tuple(Mixin(Ref(name, place)) for name in role.mixins),
        parts=(part,),
    )


def definitions_of(world: World) -> Definitions:
    """The model's form of all that is written down."""
    return Definitions(
        tuple(capability_of(unit) for unit in world.units),
        tuple(composition_of(role) for role in world.roles),
    )


def compile_world(world: World, *, approved: Iterable[str] = ()) -> Catalogue:
    """Compile a world, which has no errors by construction, with some reviews approved."""
    definitions = definitions_of(world)
    universe = universe_of_world(world)
    catalogue = compile_definitions(definitions, universe)
    reviewed = {unit.name for unit in world.units if unit.reviewed}.intersection(approved)
    approvals = frozenset(
        catalogue.approval(profile, name) for profile in PROFILES for name in reviewed
    )
    return (
        compile_definitions(definitions, universe, approvals=approvals) if approvals else catalogue
    )


def universe_of_names(names: Iterable[str]) -> Universe:
    """A universe of events of which nothing is said but their names."""
    return make_universe(EventSpec(name=parse_event_name(name)) for name in names)
