"""The session that a request names, and what it means for the request."""

from remit.kernel.authority.sessions import closed
from remit.kernel.dispatch.context import Context
from remit.model.grant import Grant, Session


def sessions_of(ctx: Context) -> tuple[Session, ...]:
    """The opened sessions, closed ones too, that a request runs in; none when it names a label."""
    if ctx.session is None:
        return ()
    fleet = ctx.kernel.authority.fleet
    return fleet.sessions.named(ctx.session, fleet.line(ctx.principal.id))


def held_by(ctx: Context, name: str) -> Grant:
    """What the caller or a descendant of it holds, in the revision and session of the request.

    Inside a session every question is about that session, also when it is about somebody else.
    """
    if name == ctx.principal.id and ctx.principal.is_operator:
        return ctx.grant
    fleet = ctx.kernel.authority.fleet
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
    fleet = ctx.kernel.authority.fleet
    line = fleet.line(ctx.principal.id)
    given = () if session is None else fleet.sessions.named(session, line)
    for one in given:
        if not one.is_open:
            raise closed(one.name)
    return {one.id: one.name for one in (*sessions_of(ctx), *given)}


def is_of_session(ctx: Context, agent: str) -> bool:
    """Tell whether an agent is bound to all that the request is, by itself or from above."""
    fleet = ctx.kernel.authority.fleet
    line = [found for name in fleet.line(agent) if (found := fleet.get(name)) is not None]
    return all(any(one.id in each.spec.bound for each in line) for one in sessions_of(ctx))
