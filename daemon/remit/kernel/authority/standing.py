"""What a home has stored that decides: approvals, runtime capabilities, agents, sessions.

The daemon reads it at its start, and commands beside or without a daemon read the same: there is
one computation of who may do what, over the definition files and this.

Light to import: most commands come here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from remit.config.definitions.files import Files
from remit.errors import RemitError
from remit.kernel.authority.fleet import Fleet
from remit.kernel.store.records import (
    AgentRecord,
    ClientKey,
    Review,
    ReviewStatus,
    SessionRecord,
)
from remit.model.capability import RuntimeCapability
from remit.model.grant import Session
from remit.model.principal import OPERATOR_ID, Agent, AgentSpec
from remit.policy.catalogue import AGENT_PREFIX, Approval, Scope

if TYPE_CHECKING:
    from remit.kernel.store.snapshot import Snapshot

LAST_GOOD = "last_good"
"""The name under which the files in force are kept."""

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, RemitError)
"""What reading something that was stored by another version, or damaged, may raise."""


class LastGood(msgspec.Struct, frozen=True):
    """The files in force and the number of their revision."""

    revision: int
    files: Files


class Standing(msgspec.Struct, frozen=True, eq=False):
    """All of it."""

    approvals: frozenset[Approval] = frozenset()
    made: tuple[RuntimeCapability, ...] = ()
    agents: tuple[Agent, ...] = ()
    sessions: tuple[tuple[Session, bool], ...] = ()
    """Each with whether it could be read."""
    tool_names: Mapping[str, Mapping[str, str]] = {}
    """What each caller was shown events as, by caller and event."""
    last_good: LastGood | None = None

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is stored that definition files alone would not say."""
        return not (self.approvals or self.made or self.agents or self.sessions)

    def fleet(self) -> Fleet:
        """The living agents and their sessions, as a daemon would have them."""
        fleet = Fleet()
        for agent in self.agents:
            if fleet.has_parent_of(agent):
                fleet.add(agent)
        for session, was_read in self.sessions:
            if has_its_owner(fleet, session, was_read=was_read):
                fleet.put_session(session)
        return fleet


def standing_of(snapshot: "Snapshot") -> Standing:
    """Make sense of what was stored; what cannot be read gives nothing, and narrows to nothing."""
    return Standing(
        approvals_in(decisions_in(snapshot.reviews)),
        tuple(_readable(snapshot.made)),
        (*map(agent_of_key, snapshot.keys), *agents_of(snapshot.agents)[0]),
        tuple(session_of(record) for record in snapshot.sessions),
        _names(snapshot.names),
        _last_good(snapshot.last_good),
    )


def _readable(bodies: Iterable[bytes]) -> Iterator[RuntimeCapability]:
    for body in bodies:
        try:
            yield runtime_capability_of(body)
        except UNREADABLE:  # the daemon logs it
            continue


def _names(rows: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for owner, event, name in rows:
        found.setdefault(owner, {})[event] = name
    return found


def _last_good(body: bytes | None) -> LastGood | None:
    if body is None:
        return None
    try:
        return msgspec.msgpack.decode(body, type=LastGood)
    except UNREADABLE:
        return None


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
    """The latest decision about a pair."""

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
        except UNREADABLE:
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


def runtime_capability_of(body: bytes) -> RuntimeCapability:
    """A capability that was made at run time; one of `UNREADABLE` is raised for what is none."""
    runtime = msgspec.msgpack.decode(body, type=RuntimeCapability)
    runtime.capability  # noqa: B018 - its patterns can be read as well
    return runtime


def session_of(record: SessionRecord) -> tuple[Session, bool]:
    """A session, and whether it could be read; one that could not is there, and closed."""
    try:
        return msgspec.msgpack.decode(record.body, type=Session), True
    except UNREADABLE:
        where = f"{record.owner}/{record.name}"
        return Session(id=where, name=record.name, owner=record.owner, closed_at=0), False


def has_its_owner(fleet: Fleet, session: Session, *, was_read: bool) -> bool:
    """Tell whether the very principal that opened a session lives."""
    if session.owner == OPERATOR_ID:
        return True
    owner = fleet.get(session.owner)
    if owner is None:
        return False
    return not was_read or owner.public_key == session.owner_key


def agent_of_key(key: ClientKey) -> Agent:
    """A client with a key is an agent under its profile."""
    return Agent(id=key.name, public_key=key.public_key, spec=AgentSpec(profile=key.profile))


def agent_of(record: AgentRecord) -> Agent:
    """What the store keeps, as the runtime knows it."""
    return Agent(
        id=record.id,
        parent=record.parent,
        position=record.position,
        public_key=record.public_key,
        token_hash=record.token_hash,
        created_at=record.created_at,
        spec=msgspec.msgpack.decode(record.body, type=AgentSpec),
    )


def agents_of(records: Iterable[AgentRecord]) -> tuple[list[Agent], list[str]]:
    """The agents of some records, and the names of those that cannot be read: they do not live."""
    agents: list[Agent] = []
    unreadable: list[str] = []
    for record in records:
        try:
            agents.append(agent_of(record))
        except UNREADABLE:
            unreadable.append(record.id)
    return agents, unreadable
