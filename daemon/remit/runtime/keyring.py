"""Who holds which key. The store remembers; this keeps living keys at hand for every message."""

from collections.abc import Callable, Iterable

import msgspec

from remit.errors import ConflictError, NotFoundError
from remit.model.agent import Agent, AgentSpec
from remit.model.principal import OPERATOR_ID, Principal
from remit.runtime.fleet import Fleet
from remit.store.protocol import Store
from remit.store.records import AgentRecord, ClientKey


class KeyRing:
    """The living keys: the operator's, those of clients, and those of spawned agents."""

    def __init__(self, operator_key: str, fleet: Fleet) -> None:
        self._names = {operator_key: OPERATOR_ID}
        self._clients: dict[str, ClientKey] = {}
        self._fleet = fleet
        self.on_revoke: Callable[[str], None] = lambda _name: None
        """Called with the name of a principal that lost its key; a face cuts its connections."""

    async def load(self, store: Store) -> None:
        """Take over the living keys and agents of the store; an orphan is not taken over."""
        for key in await store.key_list():
            self._take(key)
        for record in await store.agent_list():
            if record.parent is None or record.parent in self._fleet:
                self.admit(agent_of(record))

    def _take(self, key: ClientKey) -> None:
        self._clients[key.name] = key
        spec = AgentSpec(profile=key.profile)
        self.admit(Agent(id=key.name, public_key=key.public_key, spec=spec))

    def admit(self, agent: Agent) -> None:
        """Let an agent in: its key opens the door from now on."""
        self._fleet.add(agent)
        if agent.public_key:
            self._names[agent.public_key] = agent.id

    def dismiss(self, agents: Iterable[str]) -> None:
        """Shut agents out at once, before anything is written."""
        gone = [agent for name in agents if (agent := self._fleet.get(name)) is not None]
        self._fleet.remove(agent.id for agent in gone)
        for agent in gone:
            self._names.pop(agent.public_key, None)
            self._clients.pop(agent.id, None)
            self.on_revoke(agent.id)

    def name_of_key(self, public_key: str) -> str | None:
        """The holder of a public key, or None when no living key is registered."""
        return self._names.get(public_key)

    def principal(self, name: str) -> Principal | None:
        """The living principal of that name, or None."""
        return self._fleet.principal(name)

    def living(self) -> list[ClientKey]:
        """The living keys of clients by name."""
        return [self._clients[name] for name in sorted(self._clients)]

    async def add(self, store: Store, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a client's key; it opens the door once it is stored.

        Raises:
            ConflictError: the name or the key is taken.
        """
        if name == OPERATOR_ID or name in self._fleet or public_key in self._names:
            raise ConflictError(f"{name!r} or its key is taken", hint="choose another name")
        key = await store.key_add(name, public_key, profile)
        self._take(key)
        return key

    async def revoke(self, store: Store, name: str) -> ClientKey:
        """Take a client's key away, and end the agents that it spawned.

        Raises:
            NotFoundError: no living key has that name.
        """
        if name not in self._clients:
            raise NotFoundError(f"no living key has the name {name!r}")
        ended = self._fleet.subtree(name)
        self.dismiss(ended)
        key = await store.key_revoke(name)
        await store.agent_remove([agent for agent in ended if agent != name])
        return key

    def is_client(self, name: str) -> bool:
        """Tell whether a principal is a client with a key of its own, and not a spawned agent."""
        return name in self._clients


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
