"""What a handler gets by naming a type in its signature, besides the fields of its request."""

from collections.abc import Callable, Mapping
from typing import Any

from remit.kernel.authority.fleet import Fleet
from remit.kernel.dispatch.context import Context
from remit.kernel.store.protocol import Store
from remit.model.grant import Grant, SessionKey
from remit.model.principal import Principal
from remit.policy.catalogue import Catalogue


def session_of(ctx: Context) -> SessionKey:
    """The session that a request works in: the one it names, else that of the agent.

    An agent works in somebody else's session only when it, or one between the two, was bound to it.
    """
    fleet = ctx.kernel.authority.fleet
    name = ctx.session or _usual(fleet, ctx.principal.id)
    owner = _owner(fleet, ctx.principal.id, name)
    found = fleet.get(owner)
    return SessionKey(owner, "" if found is None else found.public_key, name)


def _usual(fleet: Fleet, agent: str) -> str:
    """The session that an agent was spawned into, or none."""
    found = fleet.get(agent)
    return (found.spec.session or "") if found else ""


def _owner(fleet: Fleet, agent: str, name: str) -> str:
    """Whose session of that name an agent works in: its own, else the nearest it is bound to."""
    opened = {one.owner: one for one in fleet.sessions.named(name, fleet.line(agent))}
    bound: set[str] = set()
    for holder in fleet.line(agent):
        session = opened.get(holder)
        if session is not None and (holder == agent or session.id in bound):
            return holder
        found = fleet.get(holder)
        bound.update(found.spec.bound if found else ())
    return agent


GIVEN: Mapping[type, Callable[[Context], Any]] = {
    Context: lambda ctx: ctx,
    Principal: lambda ctx: ctx.principal,
    Grant: lambda ctx: ctx.grant,
    Catalogue: lambda ctx: ctx.catalogue,
    Store: lambda ctx: ctx.kernel.store,
    SessionKey: session_of,
}
"""By type; a parameter of any other type is a field of the request."""
