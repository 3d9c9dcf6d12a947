"""Security reviews: which capabilities wait in profiles and for agents, and deciding about them.

A decision is bound to all that the capability brought when it was looked at, see
`policy/catalogue.py`. It is stored before it is put in force.
"""

import secrets
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import msgspec
import structlog

from remit.errors import ConflictError, DeniedError, NotFoundError, StoreError
from remit.features.reviews.desk import (
    ReviewDecision,
    ReviewItems,
    ReviewKind,
    ReviewQuery,
    stored_reviews,
)
from remit.features.reviews.store import ReviewRows
from remit.kernel.authority.plans import changes_between, holdings, plan_between
from remit.kernel.authority.revision import Authority
from remit.kernel.authority.standing import (
    Decision,
    Decisions,
    Pair,
    approvals_in,
    decisions_in,
    payload_of,
)
from remit.kernel.bus.delivery import Delivery
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import is_in_reach, visible_profiles
from remit.kernel.reload.full_reload import Outcome
from remit.kernel.reload.last_good import keep
from remit.kernel.reload.reload import CHANGED, Reloader
from remit.kernel.store.records import Review, ReviewStatus
from remit.kernel.store.rows import BlobRows
from remit.model.event import Service
from remit.model.grant import Grant
from remit.model.names import did_you_mean
from remit.model.principal import Agent, Cause
from remit.policy.catalogue import Catalogue, Scope
from remit.policy.checks import layer_of
from remit.policy.delegate import resolve_agent
from remit.policy.plan import Plan
from remit.policy.resolve import make_grant

log = structlog.get_logger()
CAPABILITY = "capability"
"""The kind of a review of a capability in a profile."""
SEPARATOR = "/"
"""Between the profile or agent and the capability in the id of a review."""


class Gain(msgspec.Struct, frozen=True):
    """What an approval would grant."""

    events: frozenset[str]
    claude_tools: frozenset[str]


async def load_decisions(store: ReviewRows) -> Decisions:
    """The newest decision about each pair."""
    return decisions_in([review async for review in stored_reviews(store, CAPABILITY)])


class CapabilityReviews(Service):
    """Decides about pairs, and puts that in force."""

    def __init__(
        self,
        store: ReviewRows,
        authority: Authority,
        delivery: Delivery,
        reloader: Reloader,
        decisions: Decisions,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._authority = authority
        self._delivery = delivery
        self._reloader = reloader
        self._decisions = dict(decisions)
        self._clock = clock
        self._deciding = anyio.Lock()

    def pairs(self, catalogue: Catalogue) -> dict[Pair, ReviewStatus]:
        """Every pair that waits, was rejected or is approved in a revision, in order."""
        found: dict[Pair, ReviewStatus] = {}
        for profile, grant in catalogue.grants.items():
            for capability in grant.pending_review:
                found[Pair(profile, capability)] = "pending"
            for capability in grant.capabilities:
                if capability in catalogue.scopes:
                    found[Pair(profile, capability)] = "approved"
        found |= self._pairs_of_agents(catalogue)
        for pair, status in found.items():
            if status == "pending" and self.decision(catalogue, pair) is not None:
                found[pair] = "rejected"
        return dict(sorted(found.items()))

    def _pairs_of_agents(self, catalogue: Catalogue) -> dict[Pair, ReviewStatus]:
        """What agents were given beside their profiles; what a profile waits for stands there."""
        found: dict[Pair, ReviewStatus] = {}
        fleet = self._authority.fleet
        for agent in fleet.all() if catalogue.scopes else ():
            if agent.spec.inherit or not agent.spec.is_changed:
                continue
            own = fleet.own_grant(agent.id, catalogue)
            profile = catalogue.grants.get(agent.spec.profile)
            waiting = set(own.pending_review) - set(profile.pending_review if profile else ())
            reviewed = catalogue.reviewed_for(agent.id, agent.public_key)
            found |= {Pair.of_agent(agent.id, name): "pending" for name in waiting}
            found |= {Pair.of_agent(agent.id, name): "approved" for name in reviewed}
        return found

    def decision(self, catalogue: Catalogue, pair: Pair) -> Decision | None:
        """What was decided about the definition that is in force; None when nothing was."""
        found, scope = self._decisions.get(pair), catalogue.scopes.get(pair.capability)
        if found is None or found.scope is None or scope is None or found.key != self._key(pair):
            return None
        return found if found.scope.covers(scope) else None

    def _key(self, pair: Pair) -> str:
        agent = self._authority.fleet.get(pair.agent) if pair.agent else None
        return agent.public_key if agent else ""

    async def decide(
        self,
        pair: Pair,
        status: ReviewStatus,
        by: str,
        note: str,
        *,
        scope: Scope,
    ) -> Plan:
        """Store a decision and put it in force as a new revision; a rejection takes back.

        Raises:
            ConflictError: it is decided so already, or the definition has changed since.
            NotFoundError: no such pair is in force.
        """
        async with self._deciding:
            catalogue = self._authority.catalogue
            known = self.pairs(catalogue)
            if pair not in known:
                raise _no_such_pair(pair, known)
            if known[pair] == status:
                raise ConflictError(f"{pair} is {status} already", details={"id": str(pair)})
            if catalogue.scopes[pair.capability] != scope:
                message = f"the definition of {pair.capability!r} has changed meanwhile"
                raise ConflictError(message, hint="look at it again: remit review list")
            decision = Decision(status, scope, by, self._clock(), note, self._key(pair))
            with anyio.CancelScope(shield=True):
                await self._store.review_add(_record(pair, decision))
                self._decisions[pair] = decision
                # If the definition changed while this was stored, the pair still waits: an
                # approval counts for what was looked at, whatever is in force.
                before = self._authority.catalogue.revision
                plan = self._put_in_force()
                await self._write(by, plan, before=before)
                await keep(BlobRows(self._store.database), self._authority.current)
            return plan

    async def _write(self, by: str, plan: Plan, *, before: int) -> None:
        try:
            await self._reloader.audit.changed(
                Cause("reviewed", by), plan, before=before, after=before + 1
            )
        except StoreError as error:  # the decision itself is in the audit, and in force
            log.warning("audit_failed", problem=error.message, event_name=CHANGED)

    def _put_in_force(self) -> Plan:
        """Without awaiting, and then everybody is told, as after a reload."""
        authority, fleet = self._authority, self._authority.fleet
        before = authority.catalogue
        held = holdings(fleet, before)
        authority.approve(approvals_in(self._decisions))
        plan = plan_between(fleet, before, authority.catalogue)
        changes = changes_between(held, holdings(fleet, authority.catalogue))
        revision = authority.catalogue.revision
        self._reloader.announce(Outcome(changed=True, revision=revision, plan=plan))
        self._delivery.tell_changes(changes, revision=revision)
        return plan


async def _listed(ctx: Context, query: ReviewQuery) -> ReviewItems:
    """The pairs of one status that the caller may see."""
    reviews = ctx.kernel.service(CapabilityReviews)
    shown = []
    for pair, found in reviews.pairs(ctx.catalogue).items():
        if found != query.status or not _may_see(ctx, pair):
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
    return ReviewItems(shown)


async def _decide(ctx: Context, id_: str, decision: ReviewDecision) -> dict[str, Any]:
    """Approve or reject a capability for a profile or an agent."""
    decision.refuse_effect()
    subject, _, capability = id_.partition(SEPARATOR)
    asked, status, note = Pair(subject, capability), decision.status, decision.note
    catalogue, reviews = ctx.catalogue, ctx.kernel.service(CapabilityReviews)
    pairs = reviews.pairs(catalogue).items()
    known = {pair: status for pair, status in pairs if _may_see(ctx, pair)}
    pair = _meant(catalogue.names.get(asked.capability, asked.capability), asked, known)
    if pair is None:
        raise _no_such_pair(asked, known)
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


def _no_such_pair(pair: Pair, known: Iterable[Pair]) -> NotFoundError:
    """The answer about a pair that does not wait and is not approved."""
    whose = f"for the agent {pair.agent!r}" if pair.agent else f"in the profile {pair.subject!r}"
    return NotFoundError(
        f"no review of {pair.capability!r} {whose} is needed",
        hint=did_you_mean(str(pair), [str(one) for one in known]),
        details={"id": str(pair)},
    )


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
    """What a pair gives its profile or agent: the difference between a yes and a no."""
    catalogue, agent = ctx.catalogue, _agent(ctx, pair)
    if agent is not None:
        reviewed = catalogue.reviewed_for(agent.id, agent.public_key)
        given, held = (
            resolve_agent(catalogue, agent.spec, lives=True, reviewed=yes)
            for yes in (reviewed | {pair.capability}, reviewed - {pair.capability})
        )
    else:
        others = frozenset(
            one
            for one in catalogue.approvals
            if (one.subject, one.capability) != (pair.subject, pair.capability)
        )
        approval = catalogue.approval(pair.subject, pair.capability)
        given, held = (
            _grant(catalogue.with_approvals(approvals), pair.subject)
            for approvals in (others | {approval}, others)
        )
    return Gain(given.events - held.events, given.claude_tools - held.claude_tools)


def _grant(catalogue: Catalogue, profile: str) -> Grant:
    layer, environment = layer_of(catalogue, profile, {})
    return make_grant(catalogue, catalogue.compositions[profile], layer, environment)


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


def _record(pair: Pair, decision: Decision) -> Review:
    return Review(
        id=f"{pair}@{secrets.token_hex(6)}",
        kind=CAPABILITY,
        subject=str(pair),
        requested_by=decision.by,
        requested_at=decision.at,
        expires_at=None,
        payload=payload_of(pair, decision),
        status=decision.status,
        decided_by=decision.by,
        decided_at=decision.at,
        note=decision.note,
    )


CAPABILITY_REVIEWS = ReviewKind(
    name=CAPABILITY, separator=SEPARATOR, listed=_listed, decide=_decide
)
"""What the desk knows of these reviews."""
