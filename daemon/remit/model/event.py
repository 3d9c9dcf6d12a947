"""What is known about an event before anybody calls it."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from remit.errors import HandlerError
from remit.model.names import EventName
from remit.model.place import Place

Effect = Literal["read", "write", "destructive"]
EFFECTS: tuple[Effect, ...] = ("read", "write", "destructive")


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
    """False: an upstream tool that was trusted unseen; see `policy.toolnames.held_back`."""
    timeout: float | None = None
    since: str = ""
    aliases: tuple[EventName, ...] = ()
    triggers: tuple[str, ...] = ()
    """Events that may be pushed because this one was called."""
    deprecated: str = ""
    """Why not to use it any more and what to use instead; empty when it is not deprecated."""
    place: Place | None = None


CEILING = "max_effect:"
"""How a rule begins that is no pattern but a ceiling."""


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


# The answer to "may X do Y?".


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
