"""The bounds of a profile: what a holder may use up, where it may write, how much its events do.

Between several sources the narrowest wins. `max_effect` says how much its events do at the most,
`exposure` how many of the tools the host of an agent is shown before anybody looked for one.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

import msgspec

from remit.errors import Place

Bound = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Prefix = Annotated[str, msgspec.Meta(max_length=512)]
Prefixes = Annotated[tuple[Prefix, ...], msgspec.Meta(max_length=64)]

Effect = Literal["read", "write", "destructive"]
EFFECTS: tuple[Effect, ...] = ("read", "write", "destructive")
CEILING = "max_effect:"
"""How a rule begins that is no pattern but a ceiling."""

Exposure = Literal["all", "discovered", "turn"]
EXPOSURES: tuple[Exposure, ...] = ("discovered", "turn", "all")
"""From few tools to many. `discovered`: the pinned ones, and what it takes to search. `turn`: those
as well, and the few that fit the last search. `all`: every tool."""


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Upper bounds; an absent one does not limit.

    `state_prefixes` says under which keys of the shared state a holder may work; an empty list
    allows none.
    """

    max_children: Bound | None = None
    max_depth: Bound | None = None
    max_calls_per_minute: Bound | None = None
    max_concurrent: Bound | None = None
    max_tokens_per_turn: Bound | None = None
    max_queue: Bound | None = None
    max_state_keys: Bound | None = None
    max_state_bytes: Bound | None = None
    state_prefixes: Prefixes | None = None

    def __post_init__(self) -> None:
        if self.state_prefixes is not None:
            # Neither order nor repetition means anything, so equal limits look equal.
            msgspec.structs.force_setattr(self, "state_prefixes", _outermost(self.state_prefixes))

    def smallest(self, other: "Limits") -> Self:
        """Combine two sources of limits."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return type(self)(*(_narrower(one, two) for one, two in pairs))

    def allow_key(self, key: str) -> bool:
        """Tell whether a key of the shared state lies where a holder may work."""
        return self.state_prefixes is None or key.startswith(self.state_prefixes)

    @property
    def are_metered(self) -> bool:
        """Tell whether calls have to be counted."""
        return self.max_calls_per_minute is not None or self.max_concurrent is not None

    def to_json(self) -> dict[str, Any]:
        """Only the limits that are set, in a stated order."""
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in pairs
            if value is not None
        }


def shared_prefixes(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """The prefixes of either that lie under a prefix of the other."""
    others = tuple(other)
    pairs = ((a, b) for a in one for b in others)
    return _outermost(
        a if a.startswith(b) else b for a, b in pairs if a.startswith(b) or b.startswith(a)
    )


def is_wider(before: Any, after: Any) -> bool:
    """Tell whether a limit that was `before` lets somebody do more as `after`."""
    if before is None or after is None:
        return before is not None
    if isinstance(before, tuple):
        return bool(shared_prefixes(before, after) != after)
    return bool(after > before)


class PlacedEffect(msgspec.Struct, frozen=True):
    """How much the events of a profile may do at the most, and where that is said."""

    effect: Effect
    place: Place

    def __str__(self) -> str:
        return f"{CEILING} {self.effect}"


def least(ceilings: Iterable[PlacedEffect | None]) -> PlacedEffect | None:
    """The lowest of several ceilings; among equals the place decides, and order never does."""
    found = [one for one in ceilings if one is not None]
    if not found:
        return None
    return min(found, key=lambda one: (EFFECTS.index(one.effect), one.place))


def is_looser(before: Effect | None, after: Effect | None) -> bool:
    """Tell whether a ceiling that was `before` lets more through as `after`."""
    if before is None or after is None:
        return before is not None
    return EFFECTS.index(after) > EFFECTS.index(before)


class PlacedExposure(msgspec.Struct, frozen=True):
    """What a profile says about it, and where."""

    mode: Exposure
    place: Place


def _outermost(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Sorted, without those that lie under another one."""
    kept: list[str] = []
    for prefix in sorted(set(prefixes)):
        # Everything under a prefix sorts directly behind it.
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return tuple(kept)


def _narrower(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return shared_prefixes(one, other) if isinstance(one, tuple) else min(one, other)


NO_LIMITS = Limits()
LIMIT_NAMES: tuple[str, ...] = Limits.__struct_fields__
PREFIX_LIMIT = "state_prefixes"
"""The one limit that is a list of texts and not a number."""
