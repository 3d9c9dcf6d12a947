"""Whom a caller may ask about: itself and its descendants; the operator everybody.

Somebody out of reach and somebody who does not exist get the same answer.
"""

from remit.errors import RemitError, UnknownAgentError
from remit.model.agent import Agent
from remit.runtime.context import Context
from remit.runtime.lookup import unseen


def agent_in_reach(ctx: Context, name: str) -> Agent:
    """A living agent that the caller may ask about.

    Raises:
        UnknownAgentError: there is none of that name, or it is not for the caller.
    """
    found = ctx.services.authority.fleet.get(name)
    if found is None or not is_in_reach(ctx, name):
        raise absent(ctx, name)
    return found


def absent(ctx: Context, name: str) -> RemitError:
    """The answer about somebody who is not there; the operator alone hears why."""
    error = unknown_agent(name)
    if ctx.principal.is_operator:
        reason = ctx.services.keyring.absence(name) or "unknown_agent"
        error.details["reason"] = reason
        if reason == "revoked":
            error.message = f"{name!r} was ended, or its key was revoked"
    return error


def is_in_reach(ctx: Context, name: str) -> bool:
    """Tell whether somebody is the caller or descends from it."""
    if ctx.principal.is_operator:
        return True
    return ctx.services.authority.fleet.is_under(name, ctx.principal.id)


def unknown_agent(name: str, purpose: str = "ask about") -> RemitError:
    """The one answer for those who do not exist and those who are out of reach."""
    return unseen(name, (), "agent", purpose=purpose, error=UnknownAgentError)
