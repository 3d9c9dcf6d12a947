"""What a home has stored that decides: approvals, made capabilities, agents, sessions.

The daemon reads it at its start, and commands beside or without a daemon read the same: there is
one computation of who may do what, over the definition files and this.

Light to import: most commands come here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from remit.config.definitions.files import Files
from remit.errors import RemitError
from remit.kernel.authority.approvals import approvals_in, decisions_in
from remit.kernel.authority.fleet import Fleet
from remit.kernel.store.records import AgentRecord, ClientKey, SessionRecord
from remit.model.capability import RuntimeCapability
from remit.model.grant import Session
from remit.model.principal import OPERATOR_ID, Agent, AgentSpec
from remit.policy.catalogue import Approval

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
            if has_its_parent(fleet, agent):
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
            yield made_of(body)
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


def made_of(body: bytes) -> RuntimeCapability:
    """A capability that was made at run time; one of `UNREADABLE` is raised for what is none."""
    made = msgspec.msgpack.decode(body, type=RuntimeCapability)
    made.capability  # noqa: B018 - its patterns can be read as well
    return made


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


def has_its_parent(fleet: Fleet, agent: Agent) -> bool:
    """Tell whether the very principal that spawned an agent lives."""
    if agent.parent is None:
        return True
    parent = fleet.get(agent.parent)
    return parent is not None and parent.public_key == agent.spec.parent_key


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


def record_of(agent: Agent) -> AgentRecord:
    """What the runtime knows, as the store keeps it."""
    return AgentRecord(
        id=agent.id,
        parent=agent.parent,
        position=agent.position,
        profile=agent.spec.profile,
        public_key=agent.public_key,
        token_hash=agent.token_hash,
        created_at=agent.created_at,
        body=msgspec.msgpack.encode(agent.spec),
    )
