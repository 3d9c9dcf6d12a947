"""The session that a request names, and which session takes an event from somebody."""

from remit.model.grant import Grant
from remit.model.session import Session
from remit.policy.resolve import grant_everything
from remit.runtime.context import Context
from remit.runtime.descent import is_in_reach
from remit.runtime.sessions import closed


def sessions_of(ctx: Context) -> tuple[Session, ...]:
    """The opened sessions, closed ones too, that a request runs in; none when it names a label."""
    if ctx.session is None:
        return ()
    fleet = ctx.services.authority.fleet
    return fleet.sessions.named(ctx.session, fleet.line(ctx.principal.id))


def held_by(ctx: Context, name: str) -> Grant:
    """What the caller or a descendant of it holds, in the revision and session of the request.

    Inside a session every question is about that session, also when it is about somebody else.
    """
    if name == ctx.principal.id and ctx.principal.is_operator:
        return ctx.grant
    fleet = ctx.services.authority.fleet
    grant = fleet.grant(name, ctx.catalogue)
    if ctx.session is None:
        return grant
    return fleet.in_session(name, ctx.session, grant, ctx.catalogue)


def binding(ctx: Context, session: str | None) -> dict[str, str]:
    """What binds an agent that is spawned by this request: its session, and the one it is given.

    Without the first, an agent could do for a request what the request itself may not do.

    Raises:
        NotFoundError: the session it is given is closed.
    """
    fleet = ctx.services.authority.fleet
    line = fleet.line(ctx.principal.id)
    given = () if session is None else fleet.sessions.named(session, line)
    for one in given:
        if not one.is_open:
            raise closed(one.name)
    return {one.id: one.name for one in (*sessions_of(ctx), *given)}


def is_of_session(ctx: Context, agent: str) -> bool:
    """Tell whether an agent is bound to all that the request is, by itself or from above."""
    fleet = ctx.services.authority.fleet
    line = [found for name in fleet.line(agent) if (found := fleet.get(name)) is not None]
    return all(any(one.id in each.spec.bound for each in line) for one in sessions_of(ctx))


def cut_by_session(ctx: Context, agent: str, event: str) -> tuple[str | None, str | None]:
    """The session that takes an event from an agent, and the ancestor that it binds.

    What binds those above the caller has no name for it: then there is only the ancestor.
    """
    fleet = ctx.services.authority.fleet
    name = ctx.catalogue.universe.canonical(event)
    if agent in fleet and name not in fleet.own_grant(agent, ctx.catalogue).events:
        return None, None  # its own rules do not allow it in the first place
    named = () if ctx.session is None else fleet.sessions.named(ctx.session, fleet.line(agent))
    for session in named:
        if not _lets_through(ctx, session.id, name):
            return session.name, None
    for holder in fleet.line(agent):
        found = fleet.get(holder)
        for each, title in (found.spec.bound if found else {}).items():
            if not _lets_through(ctx, each, name):
                shown = title if holder == agent or is_in_reach(ctx, holder) else None
                return shown, None if holder == agent else holder
    return None, None


def _lets_through(ctx: Context, session: str, event: str) -> bool:
    authority = ctx.services.authority
    current = authority.current
    # The bits of a grant mean something only among the events of their own revision.
    is_same = current.catalogue is ctx.catalogue
    everything = current.everything if is_same else grant_everything(ctx.catalogue)
    return event in authority.fleet.sessions.narrowed(ctx.catalogue, everything, [session]).events
