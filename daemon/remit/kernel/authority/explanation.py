"""Why a profile or an agent may use an event now, or what keeps it from doing so: every cause.

The verdict is the mask's; the rules and the causes are looked up beside it. The daemon answers with
this, and so do commands without one. Everything is told here: who must not hear all of it gets less
from the handler that asks.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from remit.errors import RemitError
from remit.kernel.authority.fleet import Fleet
from remit.model.event import GRANTED, Reason
from remit.model.grant import Grant
from remit.model.principal import OPERATOR_ID, Agent
from remit.policy.catalogue import Catalogue
from remit.policy.decide import refusal
from remit.policy.delegate import agent_layer, present_share, remaining, resolve_agent
from remit.policy.explain import Explanation, PermissionRule, explain, explain_layer, runtime_rules
from remit.policy.queries import Obstacle
from remit.policy.resolve import grant_everything


class Cut(msgspec.Struct, frozen=True):
    """The ancestor or session that takes from an agent what its own rules allow."""

    ancestor: str | None = None
    session: str | None = None
    holder: str | None = None
    """Whom that session binds, when it is not the agent itself."""


NO_CUT = Cut()
FindObstacle = Callable[[str], Obstacle | None]
"""Why a tool of an upstream server is no event now; None for any other name."""


def no_obstacle(_event: str) -> Obstacle | None:
    """Where no upstream servers are known of."""
    return None


def reason_for(catalogue: Catalogue, grant: Grant, event: str) -> Reason:
    """Why a holder may or may not use an event, for somebody who sees everything."""
    name = catalogue.universe.canonical(event)
    if name in grant.events:
        return GRANTED
    return refusal(grant, name) if name in catalogue.universe.index else "unknown_event"


def explain_profile(
    fleet: Fleet,
    catalogue: Catalogue,
    profile: str,
    event: str,
    *,
    find_obstacle: FindObstacle = no_obstacle,
) -> dict[str, Any]:
    """Explain a decision about a profile, with what runtime capabilities add to it now."""
    found = explain(catalogue, profile, event).to_json()
    grant = fleet.with_made(catalogue.grants[profile], catalogue)
    found = _with_verdict(fleet, catalogue, found, grant, event) | _limits(grant)
    return with_obstacle(found, find_obstacle) | {"cut_by": None, "session": None}


def with_obstacle(found: dict[str, Any], find_obstacle: FindObstacle) -> dict[str, Any]:
    """The same, with what keeps a tool of an upstream server from being an event at all."""
    obstacle = find_obstacle(found["event"]) if found["reason"] == "unknown_event" else None
    if obstacle is None:
        return found
    return found | {"causes": [*found["causes"], obstacle.to_json()], "near_misses": []}


def _limits(grant: Grant) -> dict[str, Any]:
    limits = grant.limits.to_json()
    return {"limits": limits} if limits else {}


def explain_holder(
    fleet: Fleet,
    catalogue: Catalogue,
    name: str,
    event: str,
    *,
    session: str | None = None,
    find_obstacle: FindObstacle = no_obstacle,
) -> dict[str, Any]:
    """Explain a decision about a living agent: its own rules, and all that cuts them."""
    agent = fleet.get(name)
    grant = fleet.grant(name, catalogue)
    if session is not None:
        grant = fleet.in_session(name, session, grant, catalogue)
    found = no_rules(catalogue, event)
    if agent is not None and not agent.spec.inherit:
        found = _own_rules(catalogue, agent, event)
    found = _with_verdict(fleet, catalogue, found, grant, event, agent) | _limits(grant)
    found = with_obstacle(found, find_obstacle) | {"subject": name, "cut_by": None, "session": None}
    if agent is None or found["allowed"]:
        return found
    archived = _archived(fleet, name)
    if archived is not None:
        # Its rules do not matter: nobody below it holds anything while it is archived.
        return found | {"granted_by": [], "repair": None, "causes": [archived.to_json()]}
    cut = find_cut(fleet, catalogue, name, event, session)
    above = (
        NO_CUT
        if found["reason"] == "unknown_event"
        else _taken(fleet, catalogue, name, event, session)
    )
    causes = [*found["causes"], *(one.to_json() for one in _cut_causes(above))]
    if above != NO_CUT:  # a line in its profile would not be enough
        found["repair"] = None
    return found | {"causes": causes, "cut_by": cut.ancestor or cut.holder, "session": cut.session}


def holders(
    fleet: Fleet,
    catalogue: Catalogue,
    event: str,
    *,
    profiles: Iterable[str] | None = None,
    agents: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Which profiles and living agents may use an event; of all, unless some are named."""
    name = catalogue.universe.canonical(event)
    listed = catalogue.grants if profiles is None else profiles
    living = fleet.names() if agents is None else agents
    return {
        "event": event,
        "profiles": sorted(
            one
            for one in listed
            if name in fleet.with_made(catalogue.grants[one], catalogue).events
        ),
        "agents": sorted(one for one in living if name in fleet.grant(one, catalogue).events),
    }


def find_cut(
    fleet: Fleet, catalogue: Catalogue, agent: str, event: str, session: str | None
) -> Cut:
    """The ancestor or session that takes an event from somebody whose own rules allow it."""
    name = catalogue.universe.canonical(event)
    if agent in fleet and name not in fleet.own_grant(agent, catalogue).events:
        return NO_CUT  # its own rules do not allow it in the first place
    return _taken(fleet, catalogue, agent, name, session)


def _taken(fleet: Fleet, catalogue: Catalogue, agent: str, event: str, session: str | None) -> Cut:
    """The nearest ancestor and the session that do not let an event through to somebody."""
    name = catalogue.universe.canonical(event)
    ancestor = next(
        (
            one.id
            for one in fleet.ancestors(agent)
            if name not in fleet.own_grant(one.id, catalogue).events
        ),
        None,
    )
    everything = grant_everything(catalogue)

    def lets_through(each: str) -> bool:
        return name in fleet.sessions.narrowed(catalogue, everything, [each]).events

    named = () if session is None else fleet.sessions.named(session, fleet.line(agent))
    for one in named:
        if not lets_through(one.id):
            return Cut(ancestor, one.name)
    for holder in fleet.line(agent):
        found = fleet.get(holder)
        for each, title in (found.spec.bound if found else {}).items():
            if not lets_through(each):
                return Cut(ancestor, title, None if holder == agent else holder)
    return Cut(ancestor)


def no_rules(catalogue: Catalogue, event: str) -> dict[str, Any]:
    """An explanation in which no rule speaks."""
    return {
        "event": catalogue.universe.canonical(event),
        "revision": catalogue.revision,
        "granted_by": [],
        "denied_by": [],
        "pending_review": [],
        "near_misses": [],
        "causes": [],
        "repair": None,
    }


def _with_verdict(
    fleet: Fleet,
    catalogue: Catalogue,
    found: dict[str, Any],
    grant: Grant,
    event: str,
    agent: Agent | None = None,
) -> dict[str, Any]:
    """The rules with the verdict of the mask, and with the rules of runtime capabilities."""
    reason = reason_for(catalogue, grant, event)
    found = found | {"allowed": reason == GRANTED, "reason": reason}
    if reason != GRANTED:
        waiting = _review_causes(catalogue, found["pending_review"], grant.profile, agent)
        return found | {"causes": [*found["causes"], *waiting]}
    own = catalogue.grants.get(grant.profile) if agent is None else None
    made = made_rules(fleet, catalogue, agent if agent is not None else own, event)
    return found | {
        "granted_by": [*found["granted_by"], *(rule.to_json() for rule in made)],
        "near_misses": [],
        "repair": None,
        "causes": [],
    }


def made_rules(
    fleet: Fleet, catalogue: Catalogue, holder: Agent | Grant | None, event: str
) -> list[PermissionRule]:
    """The rules by which capabilities made at run time give somebody an event now, by their ids."""
    if isinstance(holder, Agent):
        holder = None if holder.spec.inherit else fleet.unshared_grant(holder.id, catalogue)
    bit = catalogue.universe.bits_of([catalogue.universe.canonical(event)])
    rules: list[PermissionRule] = []
    for share in holder.shares if holder is not None else ():
        ceiling = fleet.author_ceiling(share.author, share.author_key, catalogue)
        if present_share(share, ceiling)[0] & bit:
            rules += runtime_rules(catalogue, share.capability, event)
    return rules


def _review_causes(
    catalogue: Catalogue, pending: list[str], profile: str, agent: Agent | None
) -> list[dict[str, Any]]:
    """The reviews that an event waits for, each with the command that approves it."""
    listed = catalogue.grants.get(profile)
    found = []
    for name in pending:
        is_own = agent is not None and (listed is None or name not in listed.pending_review)
        subject = agent.id if agent is not None and is_own else profile
        message = f"{name!r} waits for a security review for {subject!r}"
        hint = f"an operator approves it with: remit review approve {subject} {name}"
        found.append(Obstacle("review_pending", message, hint).to_json())
    return found


def _own_rules(catalogue: Catalogue, agent: Agent, event: str) -> dict[str, Any]:
    """The rules of an agent itself; of one whose profile does not count, those that are left."""
    try:
        resolve_agent(catalogue, agent.spec, lives=True)
        return _explain_agent(catalogue, agent, event).to_json()
    except RemitError as error:
        trouble = _unresolved(catalogue, agent, error)
    left = msgspec.structs.replace(agent, spec=remaining(agent.spec))
    found = _explain_agent(catalogue, left, event).to_json()
    return found | {"causes": [trouble.to_json()], "repair": None}


def _explain_agent(catalogue: Catalogue, agent: Agent, event: str) -> Explanation:
    """Explain a decision about an event in the profile and the changes of an agent.

    What its ancestors cut is not looked at.

    Raises:
        RemitError: the profile is gone, or does not fit the changes any more.
    """
    layer, _ = agent_layer(catalogue, agent.spec, lives=True)
    reviewed = catalogue.reviewed_for(agent.id, agent.public_key)
    return explain_layer(catalogue, agent.spec.profile, layer, event, reviewed)


def _unresolved(catalogue: Catalogue, agent: Agent, error: RemitError) -> Obstacle:
    profile = agent.spec.profile
    if profile and profile not in catalogue.compositions:
        message = f"its profile {profile!r} was deleted: it keeps what everybody has"
        hint = f"define {profile!r} again, or give it another: agent:update, or remit revoke"
        return Obstacle("profile_removed", message, hint)
    message = f"its profile {profile!r} does not fit it any more: {error.message}"
    return Obstacle("profile_unfit", message, "change the agent or its profile")


def _archived(fleet: Fleet, name: str) -> Obstacle | None:
    for each in (fleet.get(name), *fleet.ancestors(name)):
        if each is not None and each.spec.status != "active":
            who = "it" if each.id == name else f"{each.id!r}, which is above it,"
            message = f"{who} is archived, and holds nothing until it is active again"
            return Obstacle(
                "archived", message, f"agent:update {{agent_id: {each.id}, status: active}}"
            )
    return None


def _cut_causes(cut: Cut) -> list[Obstacle]:
    found = []
    if cut.ancestor is not None:
        who = "the operator" if cut.ancestor == OPERATOR_ID else repr(cut.ancestor)
        found.append(Obstacle("parent", f"{who}, which is above it, does not hold it"))
    if cut.session is not None:
        whose = "" if cut.holder is None else f", which binds {cut.holder!r} above it,"
        found.append(Obstacle("session", f"the session {cut.session!r}{whose} takes it away"))
    return found
