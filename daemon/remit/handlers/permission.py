"""permission:* — may I, and why."""

from typing import Annotated, Any

import msgspec

from remit.errors import InvalidDataError, RemitError, UnknownAgentError
from remit.model.agent import Agent
from remit.model.decision import GRANTED, Reason
from remit.model.grant import Grant
from remit.model.patterns import EventPattern
from remit.model.principal import OPERATOR_ID, Principal
from remit.model.suggest import did_you_mean, nearest
from remit.policy.decide import refusal
from remit.policy.explain import explain as explain_decision
from remit.policy.explain import explain_agent, givers_of
from remit.runtime.context import Context
from remit.runtime.descent import is_in_reach, unknown_agent
from remit.runtime.made_rules import made_rules
from remit.runtime.registry import event_handler
from remit.runtime.session_view import cut_by_session
from remit.runtime.subject import grant_of
from remit.runtime.view import visible_profiles

MAX_EVENTS = 1000
_NEAR = 5
_NOT_CUT = {"cut_by": None, "session": None}

Events = Annotated[list[str], msgspec.Meta(max_length=MAX_EVENTS)]


class Verdict(msgspec.Struct):
    """The answer to one check."""

    allowed: bool
    reason: Reason
    event: str
    agent: str
    revision: int


class CheckRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Which event, and for whom."""

    event: str
    agent: str | None = None


@event_handler("permission:check", capability="self_knowledge", effect="read", inline=True)
def check(request: CheckRequest, ctx: Context) -> Verdict:
    """Tell whether you may use an event.

    Args:
        event: the event in question.
        agent: somebody else that you may ask about; yourself when absent.
    """
    agent, grant = _subject(ctx, request.agent)
    reason = _reason(ctx, grant, request.event)
    return Verdict(reason == GRANTED, reason, request.event, agent, ctx.catalogue.revision)


@event_handler("permission:check_many", capability="self_knowledge", effect="read", inline=True)
def check_many(ctx: Context, events: Events, agent: str | None = None) -> dict[str, Any]:
    """Tell for each of several events whether you may use it.

    Args:
        events: the events in question.
        agent: somebody else that you may ask about; yourself when absent.
    """
    _, grant = _subject(ctx, agent)
    results = []
    for event in events:
        reason = _reason(ctx, grant, event)
        results.append({"event": event, "allowed": reason == GRANTED, "reason": reason})
    return {"results": results, "revision": ctx.catalogue.revision}


@event_handler("permission:explain", capability="self_knowledge", effect="read", inline=True)
def explain(
    ctx: Context, event: str, agent: str | None = None, profile: str | None = None
) -> dict[str, Any]:
    """Tell why an event is allowed or denied, with the rule, its file, line and column.

    Args:
        event: the event in question.
        agent: somebody else that you may ask about; yourself when absent.
        profile: a profile instead of an agent.
    """
    if agent is not None and profile is not None:
        raise InvalidDataError("give an agent or a profile, not both", details={"path": "$.agent"})
    if profile is None:
        principal = _principal(ctx, agent)
        if principal.is_operator:
            return _operator_explanation(ctx, event)
        return _agent_explanation(ctx, principal, event)
    visible = visible_profiles(ctx)
    if profile not in visible:
        message = f"there is no profile {profile!r} that you may ask about"
        raise UnknownAgentError(message, hint=did_you_mean(profile, visible))
    found = explain_decision(ctx.catalogue, profile, event).to_json()
    if ctx.principal.is_operator:
        return found
    reason = _reason(ctx, ctx.catalogue.grants[profile], event)
    return _discreet(ctx, found | {"reason": reason}, event)


def _agent_explanation(ctx: Context, principal: Principal, event: str) -> dict[str, Any]:
    """The rules of the agent itself, and the ancestor that cuts what they would allow."""
    agent = ctx.services.authority.fleet.get(principal.id)
    _, grant = _subject(ctx, principal.id)
    reason = _reason(ctx, grant, event)
    found = _no_rules(ctx, event) if agent is None else _agent_rules(ctx, agent, event)
    made = _made_rules(ctx, agent, event) if agent is not None and reason == GRANTED else []
    if made:
        found |= {"granted_by": [*found["granted_by"], *made], "near_misses": []}
    found |= {
        "allowed": reason == GRANTED,
        "reason": reason,
        "subject": principal.id,
        **(_cut(ctx, principal.id, event) if reason != GRANTED else _NOT_CUT),
    }
    return found if ctx.principal.is_operator else _discreet(ctx, found, event)


def _agent_rules(ctx: Context, agent: Agent, event: str) -> dict[str, Any]:
    """What stands in files that the caller may not see is left out."""
    profile = agent.spec.profile
    hidden = profile and not ctx.principal.is_operator and profile not in visible_profiles(ctx)
    if hidden or agent.spec.inherit:
        return _no_rules(ctx, event)
    try:
        return explain_agent(ctx.catalogue, agent.spec, event).to_json()
    except RemitError:  # its profile is gone: it holds nothing, and no rule says so
        return _no_rules(ctx, event)


def _made_rules(ctx: Context, agent: Agent, event: str) -> list[dict[str, Any]]:
    """The rules of capabilities made at run time, as far as their authors hold the event now."""
    fleet = ctx.services.authority.fleet
    return [rule.to_json() for rule in made_rules(fleet, ctx.catalogue, agent, event)]


def _cut(ctx: Context, agent: str, event: str) -> dict[str, str | None]:
    """The ancestor that cuts, and the session that does."""
    fleet = ctx.services.authority.fleet
    name = ctx.catalogue.universe.canonical(event)
    session, bound = cut_by_session(ctx, agent, event)
    found = fleet.cut_by(agent, name, ctx.catalogue) or bound
    return {"cut_by": _shown_ancestor(ctx, found), "session": session}


def _shown_ancestor(ctx: Context, found: str | None) -> str | None:
    """Of those above its own parent the caller hears nothing."""
    fleet = ctx.services.authority.fleet
    if found is None or is_in_reach(ctx, found):
        return found
    caller = fleet.get(ctx.principal.id)
    return None if caller is None else caller.parent


def _no_rules(ctx: Context, event: str) -> dict[str, Any]:
    return {
        "event": ctx.catalogue.universe.canonical(event),
        "revision": ctx.catalogue.revision,
        "granted_by": [],
        "denied_by": [],
        "pending_review": [],
        "near_misses": [],
    }


def _operator_explanation(ctx: Context, event: str) -> dict[str, Any]:
    """The operator needs no rule: everything that exists is allowed, but in a session."""
    reason = _reason(ctx, ctx.grant, event)
    session, _ = cut_by_session(ctx, OPERATOR_ID, event) if reason != GRANTED else (None, None)
    return _no_rules(ctx, event) | {
        "allowed": reason == GRANTED,
        "reason": reason,
        "subject": OPERATOR_ID,
        **_NOT_CUT,
        "session": session,
    }


def _discreet(ctx: Context, found: dict[str, Any], asked: str) -> dict[str, Any]:
    """Leave out what the caller could not use itself."""
    if ctx.sees_everything:
        return found
    held = set(ctx.grant.capabilities)
    if found["event"] not in ctx.grant.events:
        # By the name that was asked for: an old name must not betray what it stands for now.
        found["event"] = asked
        rules = found["denied_by"]
        found["denied_by"] = [r for r in rules if EventPattern.parse(r["pattern"]).covers(asked)]
    return found | {
        "granted_by": [rule for rule in found["granted_by"] if rule["capability"] in {None, *held}],
        "pending_review": [name for name in found["pending_review"] if name in held],
        "near_misses": [] if found["allowed"] else _near_misses(ctx, asked, held),
    }


def _near_misses(ctx: Context, asked: str, held: set[str]) -> list[dict[str, Any]]:
    """Looked for among the caller's own events: hidden ones must not even push others out."""
    found = []
    for event in nearest(asked, ctx.grant.events, count=_NEAR):
        givers = [name for name in givers_of(ctx.catalogue, event) if name in held]
        found.append({"event": event, "capability": givers[0] if givers else None})
    return found


@event_handler("permission:matrix", capability="catalogue_read", effect="read", inline=True)
def matrix(
    ctx: Context,
    profiles: list[str] | None = None,
    agents: list[str] | None = None,
    namespace: str | None = None,
) -> dict[str, Any]:
    """Show who may use what: a row a profile or agent, a column an event.

    Args:
        profiles: which profiles; all you may see when neither these nor agents are given.
        agents: which agents.
        namespace: only events of this namespace.
    """
    events = sorted(ctx.grant.events)
    if namespace is not None:
        events = [event for event in events if event.startswith(f"{namespace}:")]
    visible = visible_profiles(ctx)
    wanted = visible if profiles is None and agents is None else (profiles or [])
    rows = []
    for name in wanted:
        if name not in visible:
            raise UnknownAgentError(f"there is no profile {name!r} that you may ask about")
        rows.append(_row("profile", name, ctx.catalogue.grants[name], events))
    rows += [_row("agent", *_subject(ctx, name), events) for name in agents or []]
    return {"columns": events, "rows": rows, "revision": ctx.catalogue.revision}


def _row(kind: str, subject: str, grant: Grant, events: list[str]) -> dict[str, Any]:
    allowed = [event in grant.events for event in events]
    return {"kind": kind, "subject": subject, "allowed": allowed}


@event_handler("permission:changed", capability="self_knowledge", effect="read", pushed=True)
def changed(  # noqa: PLR0913, PLR0917 - the fields of what is pushed
    gained: list[str],
    lost: list[str],
    tools_gained: list[str],
    tools_lost: list[str],
    limits_changed: dict[str, Any],
    approval_added: list[str],
    approval_removed: list[str],
    tools_shown: list[str],
    tools_hidden: list[str],
    tools_changed: list[str],
    exposure_changed: list[str],
    pinned_added: list[str],
    pinned_removed: list[str],
    revision: int,
) -> None:
    """What you may do has changed; told to you alone.

    Args:
        gained: events that you may use from now on.
        lost: events that you may no longer use.
        tools_gained: model tools that you may use from now on.
        tools_lost: model tools that you may no longer use.
        limits_changed: limits that are no longer what they were.
        approval_added: events whose every call waits for an approval from now on.
        approval_removed: events that no longer wait for one.
        tools_shown: events that are among your tools from now on.
        tools_hidden: events that are no longer among them.
        tools_changed: events that are still among them, by another name or in other words.
        exposure_changed: which tools are listed at once, before and after; empty when as before.
        pinned_added: events that are listed from now on whatever the exposure.
        pinned_removed: events that are so no longer.
        revision: the revision in force.
    """


def _subject(ctx: Context, agent: str | None) -> tuple[str, Grant]:
    return agent or ctx.principal.id, grant_of(ctx, agent=agent)


def _principal(ctx: Context, agent: str | None) -> Principal:
    """The one asked about: the caller or a descendant of it. For the rest nobody else exists."""
    if agent is None or agent == ctx.principal.id:
        return ctx.principal
    found = ctx.services.keyring.principal(agent)
    if found is None or not is_in_reach(ctx, agent):
        raise unknown_agent(agent)
    return found


def _reason(ctx: Context, grant: Grant, event: str) -> Reason:
    universe = ctx.catalogue.universe
    name = universe.aliases.get(event, event)
    if name in grant.events:
        return GRANTED
    if not ctx.principal.is_operator:
        return refusal(grant, event)  # by the name that was asked for, as in the dispatcher
    # Only the operator learns that a name does not exist.
    return refusal(grant, name) if name in universe.index else "unknown_event"
