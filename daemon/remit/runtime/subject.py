"""Whose grant a question is about: the caller's, a descendant's, or a profile's."""

from remit.errors import InvalidDataError, UnknownAgentError
from remit.model.grant import Grant
from remit.runtime.context import Context
from remit.runtime.descent import absent, is_in_reach
from remit.runtime.lookup import look_up
from remit.runtime.view import visible_profiles


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
    found = ctx.services.keyring.principal(agent)
    if found is None or not is_in_reach(ctx, agent):
        raise absent(ctx, agent)
    return ctx.services.authority.grant(found, session=ctx.session)
