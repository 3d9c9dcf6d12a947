"""What is known about an event, why it is allowed or denied, and what is told of it.

A profile bounds its events in two ways: `max_effect` says how much they do at the most, `exposure`
how many of the tools the host of an agent is shown before anybody looked for one.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from remit.errors import HandlerError
from remit.model.limits import Limits
from remit.model.names import EventName
from remit.model.place import Place

Effect = Literal["read", "write", "destructive"]
EFFECTS: tuple[Effect, ...] = ("read", "write", "destructive")
CEILING = "max_effect:"
"""How a rule begins that is no pattern but a ceiling."""

Exposure = Literal["all", "discovered", "turn"]
EXPOSURES: tuple[Exposure, ...] = ("discovered", "turn", "all")
"""From few tools to many. `discovered`: the pinned ones, and what it takes to search. `turn`: those
as well, and the few that fit the last search. `all`: every tool."""
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

DIRECT_EVENT = "message:direct"
"""The event that carries a message from one agent to another."""
MAX_WAITING = 100
MAX_WAITING_BYTES = 2 << 20
"""Of all messages that wait for one agent."""
KEEP_SECONDS = 24 * 3600.0
MESSAGE_BYTES = 65_536


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


def effect_at_most(spec: EventSpec, ceiling: Effect) -> bool:
    """Tell whether the event does no more than `ceiling`; an unknown effect never qualifies."""
    return spec.effect is not None and EFFECTS.index(spec.effect) <= EFFECTS.index(ceiling)


class PlacedExposure(msgspec.Struct, frozen=True):
    """What a profile says about it, and where."""

    mode: Exposure
    place: Place


class Denial(msgspec.Struct, frozen=True):
    """What was denied to whom.

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
