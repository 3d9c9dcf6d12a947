"""session:* — working with less than you hold. Sessions take away and never give."""

from collections import Counter
from typing import Annotated, Any

import msgspec

from remit.errors import InvalidDataError, InvalidPatternError
from remit.kernel.authority.plans import changes_between, holdings
from remit.kernel.authority.sessions import closed
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import is_in_reach, unseen
from remit.model.grant import Grant, Narrowing, Session
from remit.model.limits import NO_LIMITS, Effect, Limits
from remit.model.names import KNOWN_MODEL_TOOLS
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, Name, page, whole
from remit.policy.decide import check_step, entries_of, speaks_of

SessionName = Annotated[str, whole(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", most=128)]
Tools = Annotated[tuple[Name, ...], msgspec.Meta(max_length=1000)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


class OpenRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the session is called, and what it leaves."""

    session: SessionName
    allowed_tools: Tools | None = None
    disallowed_tools: Tools = ()
    max_effect: Effect | None = None
    limits: Limits = NO_LIMITS


class NarrowRequest(OpenRequest, forbid_unknown_fields=True, kw_only=True):
    """Which session, and what it leaves of what it left so far."""

    owner: Name | None = None


@event_handler("session:open", capability="sessions")
async def open_(request: OpenRequest, ctx: Context) -> dict[str, Any]:
    """Open a session: requests of yours, and of all below you, that name it may do only this.

    Args:
        session: its name, as in 'review-7'.
        allowed_tools: events, patterns or model tools, all others are out; absent: all you hold.
        disallowed_tools: events, patterns or model tools that are out.
        max_effect: only events that do no more than this; model tools are out then.
        limits: limits for each one who works in it.
    """
    step = _step(ctx, request)
    made = await ctx.kernel.sessions.open(ctx.principal, request.session, step)
    _tell_hosts(ctx, made)
    return _left(ctx, made)


@event_handler("session:narrow", capability="sessions")
async def narrow(request: NarrowRequest, ctx: Context) -> dict[str, Any]:
    """Take more away in an open session; it acts at once on all who work in it.

    Args:
        session: its name.
        allowed_tools: of what it left so far only these are left.
        disallowed_tools: events, patterns or model tools that are out as well.
        max_effect: only events that do no more than this are left.
        limits: further limits; of two the smaller counts.
        owner: the descendant whose session it is; you when absent.
    """
    found = _session(ctx, request.session, request.owner)
    if not found.is_open:
        raise closed(found.name)
    step = _step(ctx, request)
    if step == Narrowing():
        raise InvalidDataError("that takes nothing away", details={"path": "$"})
    with _Telling(ctx, found):
        changed = await ctx.kernel.sessions.narrow(found, step)
    return _left(ctx, changed)


@event_handler("session:close", capability="sessions")
async def close(ctx: Context, session: SessionName, owner: Name | None = None) -> dict[str, Any]:
    """Close a session: nothing can be done in it any more, and agents bound to it hold nothing.

    Args:
        session: its name.
        owner: the descendant whose session it is; you when absent.
    """
    found = _session(ctx, session, owner)
    with _Telling(ctx, found) as affected:
        await ctx.kernel.sessions.close(found)
    return {"session": found.name, "owner": found.owner, "agents": affected}


@event_handler("session:list", capability="sessions", effect="read")
async def list_(ctx: Context, limit: Limit = PAGE_LIMIT, after: Key = "") -> dict[str, Any]:
    """List your sessions and those of your descendants, by owner and name.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    fleet = ctx.kernel.authority.fleet
    sessions, bound = fleet.sessions, Counter(id_ for one in fleet.all() for id_ in one.spec.bound)
    owners = [owner for owner in sessions.owners() if is_in_reach(ctx, owner)]
    found = {f"{one.owner}/{one.name}": one for owner in owners for one in sessions.of(owner)}

    def item(key: str) -> dict[str, Any]:
        return _item(ctx, found[key]) | {"agents": bound[found[key].id]}

    return page(sorted(found), item, limit=limit, after=after)


class _Telling:
    """Tells agents what they lost by what happens to the session that binds them."""

    def __init__(self, ctx: Context, session: Session) -> None:
        self._ctx = ctx
        self._session = session
        self._affected = _bound_agents(ctx, session)

    def __enter__(self) -> list[str]:
        self._before = self._holdings()
        return self._affected

    def __exit__(self, *_: object) -> None:
        # Also after a failure to write: what was taken away is gone all the same.
        kernel = self._ctx.kernel
        revision = kernel.authority.catalogue.revision
        changes = changes_between(self._before, self._holdings())
        kernel.delivery.tell_changes(changes, revision=revision)
        _tell_hosts(self._ctx, self._session)

    def _holdings(self) -> dict[str, Grant]:
        authority = self._ctx.kernel.authority
        return holdings(authority.fleet, authority.catalogue, self._affected)


def _tell_hosts(ctx: Context, session: Session) -> None:
    """Let hosts look again whose requests may name a session, though nobody is bound to it."""
    fleet = ctx.kernel.authority.fleet
    for agent in fleet.all():
        if session.owner in fleet.line(agent.id):
            ctx.kernel.delivery.lists_changed(agent.id)


def _bound_agents(ctx: Context, session: Session) -> list[str]:
    """Everybody who is bound to a session, and all below them, sorted."""
    fleet = ctx.kernel.authority.fleet
    bound = [one.id for one in fleet.all() if session.id in one.spec.bound]
    return sorted({name for one in bound for name in fleet.subtree(one)})


def _step(ctx: Context, request: OpenRequest) -> Narrowing:
    step = Narrowing(
        allowed_tools=None if request.allowed_tools is None else _sorted(request.allowed_tools),
        disallowed_tools=_sorted(request.disallowed_tools),
        max_effect=request.max_effect,
        limits=request.limits,
    )
    asked = msgspec.structs.replace(
        step, allowed_tools=request.allowed_tools, disallowed_tools=request.disallowed_tools
    )
    check_step(ctx.catalogue, _speaking(ctx), asked)  # as written, so that places are right
    return step


def _sorted(tools: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(tools)))


def _speaking(ctx: Context) -> Grant:
    """What the caller may name: what it holds. The operator has no model tools and may name all."""
    if not ctx.principal.is_operator:
        return ctx.grant
    capabilities = ctx.catalogue.capabilities.values()
    tools = {ref.name for definition in capabilities for ref in definition.claude_tools}
    return msgspec.structs.replace(ctx.grant, claude_tools=KNOWN_MODEL_TOOLS | tools)


def _session(ctx: Context, name: str, owner: str | None) -> Session:
    owner = owner or ctx.principal.id
    found = ctx.kernel.authority.fleet.sessions.get(owner, name)
    if found is None or not is_in_reach(ctx, owner):
        raise unseen(name, (), "session", purpose="change", details={"session": name})
    return found


def _left(ctx: Context, session: Session) -> dict[str, Any]:
    """What the caller would be left with in a session, beside what the request's own leaves."""
    fleet = ctx.kernel.authority.fleet
    grant = fleet.sessions.narrowed(ctx.catalogue, _speaking(ctx), [session.id])
    return {
        "session": session.name,
        "owner": session.owner,
        "allowed_events": sorted(grant.events),
        "allowed_claude_tools": sorted(grant.claude_tools),
        "limits": grant.limits.to_json(),
        "revision": ctx.catalogue.revision,
    }


def _item(ctx: Context, session: Session) -> dict[str, Any]:
    return {
        "session": session.name,
        "owner": session.owner,
        "open": session.is_open,
        "opened_at": session.opened_at,
        "closed_at": session.closed_at,
        "steps": [_shown(ctx, step) for step in session.steps],
    }


def _shown(ctx: Context, step: Narrowing) -> dict[str, Any]:
    """A step without entries that speak of nothing the caller may use by now."""
    grant = _speaking(ctx)

    def kept(texts: tuple[str, ...], *, denies: bool) -> list[str]:
        try:
            entries = entries_of(texts)
        except InvalidPatternError:  # kept by another version: nothing is left in this session
            return []
        catalogue = ctx.catalogue
        return [one.text for one in entries if speaks_of(catalogue, grant, one, denies=denies)]

    allowed = step.allowed_tools
    return {
        "allowed_tools": None if allowed is None else kept(allowed, denies=False),
        "disallowed_tools": kept(step.disallowed_tools, denies=True),
        "max_effect": step.max_effect,
        "limits": step.limits.to_json(),
    }
