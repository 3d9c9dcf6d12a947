"""What is known about an event before anybody calls it."""

from typing import Literal

import msgspec

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
    """False: an outside tool that was trusted unseen; see `policy.toolnames.held_back`."""
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
