"""Reviews of capabilities: pairs of a profile or agent and a capability, and what was decided.

A decision is bound to what the capability brought when it was looked at. The newest decision about
a pair counts.

Light to import: the command line reads the handlers' names without a daemon's machinery.
"""

from collections.abc import Iterable

import msgspec

from remit.errors import NotFoundError
from remit.kernel.store.records import Review, ReviewStatus
from remit.model.grant import Grant
from remit.model.names import did_you_mean
from remit.model.principal import Agent
from remit.policy.catalogue import AGENT_PREFIX, Approval, Catalogue, Scope
from remit.policy.checks import layer_of
from remit.policy.delegate import resolve_agent
from remit.policy.resolve import make_grant

APPROVAL = "approval"
"""A call that waits."""
CAPABILITY = "capability"
"""A capability in a profile."""
CARD = "card"
"""A card that looks suspicious."""

_DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Pair(msgspec.Struct, frozen=True, order=True):
    """A capability of a profile, or of one agent."""

    subject: str
    """A profile, or `agent:` and the name of an agent."""
    capability: str

    @classmethod
    def parse(cls, text: str) -> "Pair | None":
        """Read `profile/capability` or `agent:name/capability`; None when it is no such thing."""
        subject, slash, capability = text.partition("/")
        return cls(subject, capability) if slash else None

    @classmethod
    def of_agent(cls, agent: str, capability: str) -> "Pair":
        """A capability that one agent was given beside its profile."""
        return cls(f"{AGENT_PREFIX}{agent}", capability)

    @property
    def agent(self) -> str | None:
        """The name of the agent, or None when it is about a profile."""
        is_agent = self.subject.startswith(AGENT_PREFIX)
        return self.subject.removeprefix(AGENT_PREFIX) if is_agent else None

    def __str__(self) -> str:
        return f"{self.subject}/{self.capability}"


class Decision(msgspec.Struct, frozen=True):
    """What was decided about a pair, last."""

    status: ReviewStatus
    scope: Scope | None
    """None: it was decided by a version that looked at less, and counts no more."""
    by: str
    at: float
    note: str
    key: str = ""
    """The key of the agent that it is about."""


Decisions = dict[Pair, Decision]


class _Payload(msgspec.Struct, kw_only=True):
    """A decision as the store keeps it."""

    profile: str
    capability: str
    definition_hash: str = ""
    scope: Scope | None = None
    agent_key: str = ""


def payload_of(pair: Pair, decision: Decision) -> bytes:
    """A decision for the store; the hash is for people who read it there."""
    return msgspec.json.encode(
        _Payload(
            profile=pair.subject,
            capability=pair.capability,
            definition_hash=decision.scope.fingerprint if decision.scope else "",
            scope=decision.scope,
            agent_key=decision.key,
        ),
        order="deterministic",
    )


def decisions_in(reviews: Iterable[Review]) -> Decisions:
    """The newest decision about each pair, of reviews from the oldest to the newest.

    One that cannot be read is no approval, and an older one of its pair counts no more.
    """
    found: Decisions = {}
    for review in reviews:
        try:
            body = msgspec.json.decode(review.payload, type=_Payload)
        except _DAMAGED:
            found.pop(Pair.parse(review.subject) or Pair("", ""), None)
            continue
        found[Pair(body.profile, body.capability)] = Decision(
            review.status,
            body.scope,
            review.decided_by,
            review.decided_at or review.requested_at,
            review.note,
            body.agent_key,
        )
    return found


def approvals_in(decisions: Decisions) -> frozenset[Approval]:
    """The decisions that were a yes, as the compiler wants them."""
    return frozenset(
        Approval(pair.subject, pair.capability, decision.scope, decision.key)
        for pair, decision in decisions.items()
        if decision.status == "approved" and decision.scope is not None
    )


class Gain(msgspec.Struct, frozen=True):
    """What an approval would grant."""

    events: frozenset[str]
    claude_tools: frozenset[str]


def no_such_pair(pair: Pair, known: Iterable[Pair]) -> NotFoundError:
    """The answer about a pair that does not wait and is not approved."""
    whose = f"for the agent {pair.agent!r}" if pair.agent else f"in the profile {pair.subject!r}"
    return NotFoundError(
        f"no review of {pair.capability!r} {whose} is needed",
        hint=did_you_mean(str(pair), [str(one) for one in known]),
        details={"id": str(pair)},
    )


def gain(catalogue: Catalogue, pair: Pair, agent: Agent | None = None) -> Gain:
    """What a pair gives its profile or agent: the difference between a yes and a no."""
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
