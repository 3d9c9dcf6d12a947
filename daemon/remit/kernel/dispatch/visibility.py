"""What a caller may be shown: nothing that it could not use.

One rule for events, capabilities and profiles, so that no list or count tells more than a check.

Names in requests are looked up in this, and in nothing else: a profile, agent, capability, session,
conversation, review, card, skill, upstream server, extension, key or token is looked up among those
that the caller may see, never among all. So the code, message, hint and details of the answer are
the same for one that is hidden and one that was never there; only the name that was asked for is in
them. Where a name is to be given, one that is taken out of sight is no conflict: the daemon gives
one that is free.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from remit.errors import InvalidDataError, NotFoundError, RemitError, UnknownAgentError
from remit.kernel.authority.sessions import closed
from remit.kernel.dispatch.context import Context
from remit.model.grant import Grant, Session
from remit.model.names import did_you_mean
from remit.model.principal import OPERATOR_ID, Agent
from remit.policy.catalogue import CompiledRuntimeCapability
from remit.policy.decide import confine


def sight(context: Context) -> Grant:
    """What the caller may name when it gives rights: what it holds outside of all sessions.

    Inside of one it is shown less, but what it may ask for outside of it is no secret in there.
    """
    if context.sees_everything:
        return context.grant
    fleet, catalogue = context.kernel.authority.fleet, context.catalogue
    grant = fleet.own_grant(context.principal.id, catalogue)
    for above in fleet.ancestors(context.principal.id):
        grant = confine(catalogue, grant, fleet.own_grant(above.id, catalogue))
    return grant


def visible_capabilities(context: Context, grant: Grant | None = None) -> list[str]:
    """The capabilities whose events and model tools the caller holds all, sorted.

    `grant` is what it holds; that of the request when absent.
    """
    catalogue = context.catalogue
    held = context.grant if grant is None else grant
    if context.sees_everything:
        return sorted(catalogue.capabilities)
    return [name for name in sorted(catalogue.capabilities) if _holds(context, held, name)]


def _holds(context: Context, grant: Grant, name: str) -> bool:
    catalogue = context.catalogue
    if name in catalogue.runtime_capabilities:
        return _sees_runtime(context, grant, catalogue.runtime_capabilities[name])
    own = catalogue.own_events[name]
    tools = {ref.name for ref in catalogue.capabilities[name].claude_tools}
    if own & ~grant.bits or not tools <= grant.claude_tools:
        return False
    if catalogue.capabilities[name].status == "coming_soon":
        return True  # nobody can use it yet: it is announced to those who hold all it will give
    # One that gives nothing at all is shown only to those who hold it.
    return bool(own or tools) or name in grant.capabilities


def _sees_runtime(context: Context, grant: Grant, runtime: CompiledRuntimeCapability) -> bool:
    """Holders, the author and all below it; the operator's are seen like those of the files."""
    if runtime.capability.id in grant.capabilities:
        return True
    if runtime.author == OPERATOR_ID:
        is_held = not runtime.bits & ~grant.bits
        return is_held and runtime.claude_tools <= grant.claude_tools
    return is_author_above(context, context.principal.id, runtime.author, runtime.author_key)


def is_author_above(context: Context, name: str, author: str, key: str) -> bool:
    """Tell whether somebody is the author of something, or was spawned below it."""
    fleet = context.kernel.authority.fleet
    found = fleet.get(author)
    return found is not None and found.public_key == key and fleet.is_under(name, author)


def visible_profiles(context: Context, grant: Grant | None = None) -> dict[str, Grant]:
    """The caller's own profile, and those that grant no more than it holds, sorted by name.

    `grant` is what it holds; that of the request when absent.
    """
    grants = context.catalogue.grants
    held = context.grant if grant is None else grant
    return {
        name: grants[name]
        for name in sorted(grants)
        if context.sees_everything
        or name == context.principal.profile
        or _is_under(grants[name], held)
    }


def _is_under(grant: Grant, ceiling: Grant) -> bool:
    return not grant.bits & ~ceiling.bits and grant.claude_tools <= ceiling.claude_tools


def agent_in_reach(ctx: Context, name: str) -> Agent:
    """A living agent that the caller may ask about.

    Raises:
        UnknownAgentError: there is none of that name, or it is not for the caller.
    """
    found = ctx.kernel.authority.fleet.get(name)
    if found is None or not is_in_reach(ctx, name):
        raise absent(ctx, name)
    return found


def absent(ctx: Context, name: str) -> RemitError:
    """The answer about somebody who is not there; the operator alone hears why."""
    error = unknown_agent(name)
    if ctx.principal.is_operator:
        reason = ctx.kernel.keyring.absence(name) or "unknown_agent"
        error.details["reason"] = reason
        if reason == "revoked":
            error.message = f"{name!r} was ended, or its key was revoked"
    return error


def is_in_reach(ctx: Context, name: str) -> bool:
    """Tell whether somebody is the caller or descends from it."""
    if ctx.principal.is_operator:
        return True
    return ctx.kernel.authority.fleet.is_under(name, ctx.principal.id)


def unknown_agent(name: str, purpose: str = "ask about") -> RemitError:
    """The one answer for those who do not exist and those who are out of reach."""
    return unseen(name, (), "agent", purpose=purpose, error=UnknownAgentError)


def profile_in_sight(ctx: Context, name: str) -> Grant:
    """What a profile grants that the caller may ask about.

    Raises:
        UnknownAgentError: there is none of that name, or it is not for the caller.
    """
    seen = visible_profiles(ctx)
    return look_up(name, seen, "profile", purpose="ask about", error=UnknownAgentError)


def grant_of(ctx: Context, *, agent: str | None = None, profile: str | None = None) -> Grant:
    """The grant of somebody that the caller may ask about; its own when nobody is named.

    Raises:
        InvalidDataError: both an agent and a profile were named.
        UnknownAgentError: there is none of that name, or it is not for the caller.
    """
    if agent is not None and profile is not None:
        raise InvalidDataError("give an agent or a profile, not both", details={"path": "$.agent"})
    if profile is not None:
        return profile_in_sight(ctx, profile)
    if agent is None or agent == ctx.principal.id:
        return ctx.grant
    found = ctx.kernel.keyring.principal(agent)
    if found is None or not is_in_reach(ctx, agent):
        raise absent(ctx, agent)
    return ctx.kernel.authority.grant(found, session=ctx.session)


def may_address(context: Context, name: str) -> bool:
    """Tell whether somebody lives in the caller's tree; the operator is in every one.

    Whom one may send a message, one may share a conversation with, and nobody else.
    """
    fleet, caller = context.kernel.authority.fleet, context.principal
    if fleet.principal(name) is None:
        return False
    if caller.is_operator or name == OPERATOR_ID:
        return True
    return fleet.root(name) == fleet.root(caller.id)


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


Found = TypeVar("Found")


def look_up(
    name: str,
    seen: Mapping[str, Found],
    kind: str,
    *,
    purpose: str = "",
    hint: str = "",
    error: type[RemitError] = NotFoundError,
) -> Found:
    """What a caller named, of all that it may see.

    Args:
        name: what was asked for.
        seen: everything of that kind that the caller may see, by name.
        kind: what it is called, as in 'profile'.
        purpose: what the caller wants with it, as in 'ask about'.
        hint: what to do when no name is near.
        error: the kind of failure.

    Raises:
        RemitError: there is none of that name, or it is not for the caller.
    """
    if name not in seen:
        raise unseen(name, seen, kind, purpose=purpose, hint=hint, error=error)
    return seen[name]


def unseen(  # noqa: PLR0913 - as above
    name: str,
    seen: Iterable[str],
    kind: str,
    *,
    purpose: str = "",
    hint: str = "",
    details: Mapping[str, Any] | None = None,
    error: type[RemitError] = NotFoundError,
) -> RemitError:
    """The one answer for what does not exist and what the caller may not see."""
    whose = f" that you may {purpose}" if purpose else ""
    article = f"{kind} " if kind else ""
    return error(
        f"there is no {article}{name!r}{whose}",
        hint=did_you_mean(name, seen) or hint,
        details=details,
    )


def free_name(asked: str, is_free: Callable[[str], bool], *, most: int) -> str:
    """A free name made of one that is taken where the caller does not see it."""
    while True:
        suffix = f"-{secrets.token_hex(3)}"
        name = f"{asked[: most - len(suffix)]}{suffix}"
        if is_free(name):
            return name
