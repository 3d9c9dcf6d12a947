"""permission:* — may I, and why."""

from typing import Annotated, Any

import msgspec

from remit.errors import REQUEST, InvalidDataError
from remit.kernel.authority.explanation import (
    explain_holder,
    explain_profile,
    find_cut,
    holders,
    no_rules,
    with_obstacle,
)
from remit.kernel.authority.fleet import NOTHING
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import (
    absent,
    grant_of,
    held_by,
    is_in_reach,
    profile_in_sight,
    visible_profiles,
)
from remit.model.event import GRANTED, Reason
from remit.model.grant import Grant
from remit.model.limits import CEILING
from remit.model.names import EventName, EventPattern, did_you_mean, nearest
from remit.model.principal import OPERATOR_ID, Principal
from remit.model.schema import Name
from remit.policy.decide import refusal
from remit.policy.queries import Obstacle, narrowest_giver

MAX_EVENTS = 1000
_NEAR = 5

Events = Annotated[list[Name], msgspec.Meta(max_length=MAX_EVENTS)]
Rows = Annotated[list[Name], msgspec.Meta(max_length=MAX_EVENTS)]


class Verdict(msgspec.Struct):
    """The answer to one check."""

    allowed: bool
    reason: Reason
    event: str
    agent: str
    revision: int


class CheckRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Which event, and for whom."""

    event: Name
    agent: Name | None = None


@event_handler("permission:check", capability="self_knowledge", effect="read", inline=True)
def check(request: CheckRequest, ctx: Context) -> Verdict:
    """Tell whether you may use an event.

    Args:
        event: the event in question.
        agent: somebody else that you may ask about; yourself when absent.
    """
    if (gone := _absence(ctx, request.agent)) is not None:
        name, revision = request.agent or "", ctx.catalogue.revision
        return Verdict(
            allowed=False, reason=gone, event=request.event, agent=name, revision=revision
        )
    agent, grant = _subject(ctx, request.agent)
    reason = _reason(ctx, grant, request.event)
    return Verdict(reason == GRANTED, reason, request.event, agent, ctx.catalogue.revision)


@event_handler("permission:check_many", capability="self_knowledge", effect="read", inline=True)
def check_many(ctx: Context, events: Events, agent: Name | None = None) -> dict[str, Any]:
    """Tell for each of several events whether you may use it.

    Args:
        events: the events in question.
        agent: somebody else that you may ask about; yourself when absent.
    """
    gone = _absence(ctx, agent)
    grant = NOTHING if gone is not None else _subject(ctx, agent)[1]
    results = []
    for event in events:
        reason = gone or _reason(ctx, grant, event)
        results.append({"event": event, "allowed": reason == GRANTED, "reason": reason})
    return {"results": results, "revision": ctx.catalogue.revision}


@event_handler("permission:explain", capability="self_knowledge", effect="read", inline=True)
def explain(
    ctx: Context, event: Name, agent: Name | None = None, profile: Name | None = None
) -> dict[str, Any]:
    """Tell why an event is allowed or denied, with the rule, its file, line and column.

    Args:
        event: the event in question.
        agent: somebody else that you may ask about; yourself when absent.
        profile: a profile instead of an agent.
    """
    if agent is not None and profile is not None:
        raise InvalidDataError("give an agent or a profile, not both", details={"path": "$.agent"})
    fleet, catalogue = ctx.kernel.authority.fleet, ctx.catalogue
    if profile is not None:
        grant = profile_in_sight(ctx, profile)
        found = explain_profile(fleet, catalogue, profile, event, find_obstacle=ctx.kernel.obstacle)
        return _told(ctx, found, grant, event)
    if (gone := _absence(ctx, agent)) is not None:
        return _explained_absence(ctx, str(agent), event, gone)
    principal = _principal(ctx, agent)
    if principal.is_operator:
        return _operator_explanation(ctx, event)
    found = explain_holder(
        fleet,
        catalogue,
        principal.id,
        event,
        session=ctx.session,
        find_obstacle=ctx.kernel.obstacle,
    )
    found |= _within_limits(ctx, principal.id, found)
    return _told(ctx, found, grant_of(ctx, agent=principal.id), event)


def _absence(ctx: Context, agent: str | None) -> Reason | None:
    """Why there is nobody of that name; only the operator may hear of it, else it is an error."""
    if agent is None or not ctx.principal.is_operator:
        return None
    return ctx.kernel.keyring.absence(agent)


def _explained_absence(ctx: Context, name: str, event: str, reason: Reason) -> dict[str, Any]:
    known = [*ctx.kernel.authority.fleet.names(), *ctx.catalogue.compositions]
    message = f"there is no agent and no profile {name!r}"
    if reason == "revoked":
        message = f"{name!r} was ended, or its key was revoked"
    cause = Obstacle(reason, message, did_you_mean(name, known))
    found = {"subject": name, "cut_by": None, "session": None, "causes": [cause.to_json()]}
    return no_rules(ctx.catalogue, event) | {"allowed": False, "reason": reason} | found


def _told(ctx: Context, found: dict[str, Any], grant: Grant, event: str) -> dict[str, Any]:
    """All of it to the operator; to others no rule, cause or name that they may not know."""
    if ctx.principal.is_operator:
        return found
    # By the name that was asked for, as in the dispatcher.
    reason = _reason(ctx, grant, event)
    found |= {"reason": reason, "allowed": reason == GRANTED, "repair": None, "causes": []}
    if found["subject"] in ctx.kernel.authority.fleet:
        found |= _shown_cut(ctx, found["subject"], event, found)
        agent = ctx.kernel.authority.fleet.get(found["subject"])
        hidden = agent and agent.spec.profile and agent.spec.profile not in visible_profiles(ctx)
        if hidden:
            # What stands in files that the caller may not see is left out.
            found |= {"granted_by": [], "denied_by": [], "pending_review": [], "near_misses": []}
    return _discreet(ctx, found, event)


def _shown_cut(
    ctx: Context, agent: str, event: str, found: dict[str, Any]
) -> dict[str, str | None]:
    """What binds those above the caller has no name for it: then there is only the ancestor."""
    if found["allowed"]:
        return {"cut_by": None, "session": None}
    fleet = ctx.kernel.authority.fleet
    cut = find_cut(fleet, ctx.catalogue, agent, event, ctx.session)
    known = cut.holder is None or is_in_reach(ctx, cut.holder)
    return {
        "cut_by": _shown_ancestor(ctx, cut.ancestor or cut.holder),
        "session": cut.session if known else None,
    }


def _within_limits(ctx: Context, agent: str, found: dict[str, Any]) -> dict[str, Any]:
    """The limits of an agent, how much of them is used now, and the one that it has reached."""
    limits, rate_limiter = held_by(ctx, agent).limits, ctx.kernel.rate_limiter
    if not limits.to_json():
        return {}
    used = {"calls_last_minute": rate_limiter.calls(agent), "running": rate_limiter.running(agent)}
    told = {"limits": limits.to_json(), "use": used}
    reached = rate_limiter.reached(agent, limits)
    if reached is None:
        return told
    limit, seconds = reached
    message = f"it has reached its limit {limit}, {told['limits'][limit]}: calls are refused now"
    cause = Obstacle("limit", message, f"there is room again in {seconds:g} s")
    return told | {"causes": [*found["causes"], cause.to_json()]}


def _shown_ancestor(ctx: Context, found: str | None) -> str | None:
    """Of those above its own parent the caller hears nothing."""
    fleet = ctx.kernel.authority.fleet
    if found is None or is_in_reach(ctx, found):
        return found
    caller = fleet.get(ctx.principal.id)
    return None if caller is None else caller.parent


def _operator_explanation(ctx: Context, event: str) -> dict[str, Any]:
    """The operator needs no rule: everything that exists is allowed, but in a session."""
    reason = _reason(ctx, ctx.grant, event)
    fleet = ctx.kernel.authority.fleet
    session = None
    if reason != GRANTED:
        session = find_cut(fleet, ctx.catalogue, OPERATOR_ID, event, ctx.session).session
    told = {"allowed": reason == GRANTED, "reason": reason, "subject": OPERATOR_ID}
    found = no_rules(ctx.catalogue, event) | told | {"cut_by": None, "session": session}
    return with_obstacle(found, ctx.kernel.obstacle)


def _discreet(ctx: Context, found: dict[str, Any], asked: str) -> dict[str, Any]:
    """Leave out what the caller could not use itself."""
    if ctx.sees_everything:
        return found
    held = set(ctx.grant.capabilities)
    if found["event"] not in ctx.grant.events:
        # By the name that was asked for: an old name must not betray what it stands for now.
        found["event"] = asked
        rules = found["denied_by"]
        found["denied_by"] = [rule for rule in rules if _speaks_of(rule, asked)]
        if any(rule["pattern"].startswith(CEILING) for rule in rules):
            found["granted_by"] = []  # a name that does not exist has none either
    # Paths begin with profiles, and the caller may not know what its own builds on.
    known = {REQUEST.file, *held, *visible_profiles(ctx)}
    granted = [
        rule | {"path": [name for name in rule["path"] if name.partition(":")[0] in known]}
        for rule in found["granted_by"]
        if rule["capability"] in {None, *held}
    ]
    return found | {
        "granted_by": granted,
        "pending_review": [name for name in found["pending_review"] if name in held],
        "near_misses": [] if found["allowed"] else _near_misses(ctx, asked, held),
    }


def _speaks_of(rule: dict[str, Any], asked: str) -> bool:
    pattern = rule["pattern"]
    return pattern.startswith(CEILING) or EventPattern.parse(pattern).covers(EventName(asked))


def _near_misses(ctx: Context, asked: str, held: set[str]) -> list[dict[str, Any]]:
    """Looked for among the caller's own events: hidden ones must not even push others out."""
    found = []
    for event in nearest(asked, ctx.grant.events, count=_NEAR):
        giver = narrowest_giver(ctx.catalogue, event, among=held)
        found.append({"event": event, "capability": giver})
    return found


@event_handler("permission:matrix", capability="catalogue_read", effect="read", inline=True)
def matrix(
    ctx: Context,
    profiles: Rows | None = None,
    agents: Rows | None = None,
    namespace: Name | None = None,
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
    everything = profiles is None and agents is None
    wanted = list(visible_profiles(ctx)) if everything else (profiles or [])
    rows = []
    for name in wanted:
        fleet = ctx.kernel.authority.fleet
        grant = fleet.with_made(profile_in_sight(ctx, name), ctx.catalogue)
        rows.append(_row("profile", name, grant, events))
    rows += [_row("agent", *_subject(ctx, name), events) for name in agents or []]
    return {"columns": events, "rows": rows, "revision": ctx.catalogue.revision}


@event_handler("permission:who_can", capability="catalogue_read", effect="read", inline=True)
def who_can(ctx: Context, event: Name) -> dict[str, Any]:
    """Tell which profiles and which living agents may use an event, among those that you may see.

    Args:
        event: the event in question; an old name works too.
    """
    fleet, catalogue = ctx.kernel.authority.fleet, ctx.catalogue
    name = catalogue.universe.canonical(event)
    if not ctx.sees_everything and name not in ctx.grant.events:
        # Whether others hold what the caller does not is not for it to know.
        return {"event": event, "profiles": [], "agents": [], "revision": catalogue.revision}
    everybody = fleet.names() if ctx.principal.is_operator else fleet.subtree(ctx.principal.id)
    found = holders(fleet, catalogue, event, profiles=visible_profiles(ctx), agents=everybody)
    return found | {"revision": catalogue.revision}


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
    found = ctx.kernel.keyring.principal(agent)
    if found is None or not is_in_reach(ctx, agent):
        raise absent(ctx, agent)
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
