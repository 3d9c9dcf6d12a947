"""Reviews of capabilities: of profiles, and of single agents that were given more than theirs."""

from typing import Any

from remit.errors import ConflictError, DeniedError
from remit.features.reviews.capabilities import CapabilityReviews
from remit.kernel.authority.approvals import CAPABILITY, Gain, Pair, gain, no_such_pair
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import is_in_reach, visible_profiles
from remit.kernel.store.records import ReviewStatus
from remit.model.agent import Agent


def listed(ctx: Context, status: str) -> list[dict[str, Any]]:
    """The pairs of one status that the caller may see."""
    reviews = ctx.kernel.service(CapabilityReviews)
    shown = []
    for pair, found in reviews.pairs(ctx.catalogue).items():
        if found != status or not _may_see(ctx, pair):
            continue
        gives = _gain(ctx, pair)
        decision = reviews.decision(ctx.catalogue, pair)
        shown.append(
            {
                **_described(ctx, pair, gives),
                "status": found,
                "definition_hash": ctx.catalogue.scopes[pair.capability].fingerprint,
                "decided_by": decision.by if decision else "",
                "decided_at": decision.at if decision else None,
                "note": decision.note if decision else "",
            }
        )
    return shown


async def decide(ctx: Context, asked: Pair, status: ReviewStatus, note: str) -> dict[str, Any]:
    """Approve or reject a capability for a profile or an agent."""
    catalogue, reviews = ctx.catalogue, ctx.kernel.service(CapabilityReviews)
    pairs = reviews.pairs(catalogue).items()
    known = {pair: status for pair, status in pairs if _may_see(ctx, pair)}
    pair = _meant(catalogue.names.get(asked.capability, asked.capability), asked, known)
    if pair is None:
        raise no_such_pair(asked, known)
    gives = _gain(ctx, pair)
    if not ctx.principal.is_operator:
        _check_reviewer(ctx, pair)
    scope = catalogue.scopes[pair.capability]
    plan = await reviews.decide(pair, status, ctx.principal.id, note, scope=scope)
    return {
        **_described(ctx, pair, gives),
        "status": status,
        "note": note,
        "revision": ctx.kernel.authority.catalogue.revision,
        "profiles": plan.to_json()["profiles"] if ctx.sees_everything else {},
    }


def _meant(capability: str, asked: Pair, known: dict[Pair, ReviewStatus]) -> Pair | None:
    """The pair that somebody names; an agent may be named without `agent:`.

    Raises:
        ConflictError: a profile and an agent have that name.
    """
    named = Pair(asked.subject, capability)
    of_agent = Pair.of_agent(asked.subject, capability)
    if named in known and of_agent in known:
        message = f"{asked.subject!r} is a profile and an agent, and {capability!r} is about both"
        hint = f"decide about the agent alone with {of_agent}; rename one of them"
        raise ConflictError(message, hint=hint)
    return next((pair for pair in (named, of_agent) if pair in known), None)


def _described(ctx: Context, pair: Pair, gives: Gain) -> dict[str, Any]:
    agent = _agent(ctx, pair)
    return {
        "id": str(pair),
        "kind": CAPABILITY,
        "profile": agent.spec.profile if agent else pair.subject,
        "agent": pair.agent,
        "capability": pair.capability,
        "grants": sorted(gives.events),
        "claude_tools": sorted(gives.claude_tools),
    }


def _agent(ctx: Context, pair: Pair) -> Agent | None:
    return ctx.kernel.authority.fleet.get(pair.agent) if pair.agent else None


def _gain(ctx: Context, pair: Pair) -> Gain:
    return gain(ctx.catalogue, pair, _agent(ctx, pair))


def _may_see(ctx: Context, pair: Pair) -> bool:
    if ctx.principal.is_operator:
        return True
    seen = is_in_reach(ctx, pair.agent) if pair.agent else pair.subject in visible_profiles(ctx)
    return seen and not _excess(ctx, _gain(ctx, pair))


def _excess(ctx: Context, gives: Gain) -> list[str]:
    """What an approval would give away that the caller does not hold freely itself."""
    free = ctx.grant.events - ctx.grant.approval_required
    return sorted(gives.events - free) + sorted(gives.claude_tools - ctx.grant.claude_tools)


def _check_reviewer(ctx: Context, pair: Pair) -> None:
    """Refuse who must not decide: whoever gains by it, or gave the capability itself."""
    fleet, me = ctx.kernel.authority.fleet, ctx.principal.id
    if pair.agent is not None:
        raise DeniedError("nobody approves for themselves or their own agents", reason="no_grant")
    mine = {agent.spec.profile for agent in (fleet.get(me), *fleet.ancestors(me)) if agent}
    if pair.subject in mine:
        raise DeniedError("nobody approves for their own profile", reason="explicit_deny")
