"""What is known about an event, all events of a revision, and what is told of one.

The events of a revision are numbered so that sets of them are plain integers. Names are sorted, so
the events under a prefix are one run of neighbours and a wildcard expands to a mask without looking
at each name.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import compress
from typing import Any, Literal

import msgspec

from remit.errors import HandlerError, Place
from remit.model.limits import EFFECTS, Effect, Limits, PlacedEffect
from remit.model.names import EventName, EventPattern

SEARCH = "discovery:discover"
"""The event by which the others are found; without it everything is listed, whatever is said."""

Reason = Literal[
    "granted",
    "explicit_deny",
    "no_grant",
    "unknown_event",
    "review_pending",
    "limit",
    "revoked",
    "unknown_agent",
]
GRANTED: Reason = "granted"
STATE = "state:"
"""How the events begin that are about one key of the shared state."""

_AFTER_ANY_NAME = "\U0010ffff"
_FEW = 12
_TO_SELECTORS = bytes.maketrans(b"01", b"\0\1")


class EventSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An event and the flags of its handler; one read from a list of names has only its name."""

    name: EventName
    capability: str | None = None
    summary: str = ""
    tool: str = ""
    """The tool name that the handler asks for; empty: made from the event name."""
    title: str = ""
    """Its name for people, where hosts show one; empty: none."""
    effect: Effect | None = None
    effect_stated: bool = True
    """False: nobody said what an upstream tool does, and `effect` is the worst that it could be."""
    requires_auth: bool = True
    resource_intensive: bool = False
    open_world: bool = False
    wildcard: bool = True
    """False: no wildcard ever grants this event, it must be named."""
    approval: bool = False
    """True: each call waits for an operator's yes to exactly its arguments."""
    pushed: bool = False
    """True: the event is only ever pushed; a grant says who may see it, and nobody calls it."""
    only_takes: bool = False
    """True: it only ever takes rights away, and does so even when that cannot be written down."""
    fleeting: bool = False
    """True: a call leaves nothing behind, so allowed ones are audited no more than reads."""
    content: bool = False
    """True: answers are MCP content, `{content: [blocks], structured_content?}`, and shown so."""
    vouched: bool = True
    """False: an upstream tool that was trusted unseen; see `policy.tool_names.held_back`."""
    timeout: float | None = None
    since: str = ""
    aliases: tuple[EventName, ...] = ()
    triggers: tuple[str, ...] = ()
    """Events that may be pushed because this one was called."""
    deprecated: str = ""
    """Why not to use it any more and what to use instead; empty when it is not deprecated."""
    place: Place | None = None


def effect_at_most(spec: EventSpec, ceiling: Effect) -> bool:
    """Tell whether the event does no more than `ceiling`; an unknown effect never qualifies."""
    return spec.effect is not None and EFFECTS.index(spec.effect) <= EFFECTS.index(ceiling)


class Universe(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The events of one revision."""

    specs: Mapping[str, EventSpec]
    names: tuple[str, ...]
    index: Mapping[str, int]
    aliases: Mapping[str, str]
    named_only: int
    """Bits of the events that no wildcard grants."""
    approved_only: int = 0
    """Bits of the events whose every call needs an operator's yes."""
    pushed: int = 0
    """Bits of the events that nobody calls: they are no tools."""
    at_most: Mapping[Effect, int] = {}
    """Bits of the events that do no more than that; one of unknown effect is in none of them."""

    @property
    def everything(self) -> int:
        """The bits of all events."""
        return (1 << len(self.names)) - 1

    def canonical(self, name: str) -> str:
        """The present name of an event that may have been asked for by an old one."""
        return self.aliases.get(name, name)

    def present(self, pattern: EventPattern) -> EventPattern:
        """The pattern by present names: an event that is named by an old one gets its new one."""
        if pattern.exact and pattern.prefix in self.aliases:
            return EventPattern(self.aliases[pattern.prefix], exact=True)
        return pattern

    def granted_by(self, pattern: EventPattern) -> int:
        """The bits that a pattern grants: a wildcard passes over the events that must be named."""
        if pattern.exact:
            return self._bit(self.canonical(pattern.prefix))
        return self._run(pattern.prefix) & ~self.named_only

    def denied_by(self, pattern: EventPattern) -> int:
        """The bits that a pattern denies: everything it covers by any name, old ones included."""
        if pattern.exact:
            return self._bit(self.canonical(pattern.prefix))
        return self._run(pattern.prefix) | self.bits_of(self._by_old_name(pattern))

    def denials(self, pattern: EventPattern) -> list[EventPattern]:
        """A denial by present names; what a wildcard covers by an old name is named as well."""
        if pattern.exact:
            return [self.present(pattern)]
        return [pattern, *(EventPattern(n, exact=True) for n in self._by_old_name(pattern))]

    def names_in(self, bits: int) -> list[str]:
        """The names of a set of events, sorted."""
        if bits.bit_count() <= _FEW:
            return self._few_names(bits)
        selectors = bin(bits)[:1:-1].encode().translate(_TO_SELECTORS)
        return list(compress(self.names, selectors))

    def _few_names(self, bits: int) -> list[str]:
        """Bit by bit: for a handful of events far cheaper than a look at every name."""
        names = []
        while bits:
            lowest = bits & -bits
            names.append(self.names[lowest.bit_length() - 1])
            bits ^= lowest
        return names

    def bits_of(self, names: Iterable[str]) -> int:
        """The set of the events with these names; unknown ones are left out."""
        bits = 0
        for name in names:
            bits |= self._bit(name)
        return bits

    def above(self, ceiling: PlacedEffect | None) -> int:
        """The bits of all events that a ceiling takes away."""
        return self.everything & ~self.at_most[ceiling.effect] if ceiling else 0

    def lets_through(self, ceiling: PlacedEffect | None, event: str) -> bool:
        """Tell whether an event does no more than a ceiling lets it."""
        return not self.above(ceiling) & self.bits_of([event])

    def _by_old_name(self, pattern: EventPattern) -> list[str]:
        return [name for alias, name in self.aliases.items() if pattern.covers(alias)]

    def _bit(self, name: str) -> int:
        at = self.index.get(name)
        return 0 if at is None else 1 << at

    def _run(self, prefix: str) -> int:
        low = bisect_left(self.names, prefix)
        high = bisect_left(self.names, prefix + _AFTER_ANY_NAME)
        return ((1 << (high - low)) - 1) << low


def make_universe(specs: Iterable[EventSpec]) -> Universe:
    """Number the events."""
    by_name: dict[str, EventSpec] = {spec.name: spec for spec in specs}
    names = tuple(sorted(by_name))
    index = {name: at for at, name in enumerate(names)}
    # An event that exists is never taken over by an old name of another one.
    aliases: dict[str, str] = {
        alias: name for name in names for alias in by_name[name].aliases if alias not in by_name
    }
    named_only = sum(1 << index[name] for name in names if not by_name[name].wildcard)
    approved_only = sum(1 << index[name] for name in names if by_name[name].approval)
    pushed = sum(1 << index[name] for name in names if by_name[name].pushed)
    at_most: dict[Effect, int] = {
        effect: sum(1 << index[name] for name in names if effect_at_most(by_name[name], effect))
        for effect in EFFECTS
    }
    return Universe(by_name, names, index, aliases, named_only, approved_only, pushed, at_most)


class Denial(msgspec.Struct, frozen=True):
    """A denial: the principal, the event and the reason.

    Denials of one `group` are repeats of each other; `item` is what may differ between them. Both
    are the event when they are empty.
    """

    principal: str
    event: str
    reason: str
    details: dict[str, Any] = {}
    group: str = ""
    item: str = ""


def decisions_of(outcome: str, details: dict[str, Any]) -> int:
    """How many decisions a row stands for: that of repeated denials for more than one."""
    count = details.get("count", 1) if outcome == "denied" else 1
    return count if isinstance(count, int) else 1


# Untracked, because one is made for every emit: what it carries never points back at it.
class Notice(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An event on its way to any number of listeners."""

    event: str
    data: Any
    origin: str
    """Who caused it."""
    at: float

    def is_within(self, limits: Limits) -> bool:
        """Tell whether it is about nothing that somebody under these limits must not know of.

        What is told about the shared state carries the key; without one, nobody can tell where it
        lies, and who is limited to a part of the state is not told.
        """
        if limits.state_prefixes is None or not self.event.startswith(STATE):
            return True
        key = self.data.get("key") if isinstance(self.data, dict) else None
        return isinstance(key, str) and limits.allow_key(key)


class MisplacedHandlerError(HandlerError):
    """A decorated function that cannot be served."""

    problem: str = HandlerError.code
    """The code of the mistakes that `remit check` tells."""

    def __init__(self, message: str, *, hint: str, places: tuple[Place, ...]) -> None:
        super().__init__(message, hint=hint)
        self.places = places


class TakenEventError(MisplacedHandlerError):
    """Two functions with one event; the second is not served."""

    problem = "duplicate_event"

    def __init__(self, name: str, first: Place | None, second: Place | None) -> None:
        message = f"{name!r} has a handler already: {first}, and again: {second}"
        places = tuple(place for place in (second, first) if place is not None)
        super().__init__(message, hint="give one of them another name", places=places)


class Service:
    """The base of what a feature serves.

    A handler that names such a type is given the one service of it, not a field of its request.
    """

    __slots__ = ()
