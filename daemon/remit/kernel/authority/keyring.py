"""Who holds which key or bearer token.

The store remembers them; what lives is kept at hand here, for every message.
"""

import hashlib
import hmac
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import anyio
import msgspec
import structlog

from remit.errors import ConflictError, NotFoundError, UnknownAgentError
from remit.kernel.authority.fleet import Fleet
from remit.kernel.authority.session_manager import load_sessions
from remit.kernel.authority.standing import agent_of_key, agents_of
from remit.kernel.authority.store import MOST_ENDED, PrincipalRows
from remit.kernel.store.records import AgentRecord, ClientKey
from remit.model.event import Reason
from remit.model.principal import ANYWHERE, OPERATOR_ID, RESERVED, Agent, Bearer, Principal, Token

log = structlog.get_logger()

LONGEST_TOKEN = 256


class KeyRing:
    """The living keys: the operator's, those of clients, and those of spawned agents."""

    def __init__(
        self,
        operator_key: str,
        fleet: Fleet,
        rows: PrincipalRows,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._operator_key = operator_key
        self.tokens = TokenRing(clock or ForwardClock(time.time, time.monotonic))
        self._names = {operator_key: OPERATOR_ID}
        self._clients: dict[str, ClientKey] = {}
        self._fleet = fleet
        self._rows = rows
        self._arriving: dict[str, str | None] = {}
        self._arriving_keys: set[str] = set()
        self._unwritten: set[str] = set()
        self._ended: dict[str, None] = {}
        self.unrevoked: set[str] = set()
        """Clients that are shut out, though the store still has their keys: revoke them again."""
        self.updating = anyio.Lock()
        """Held while an agent is changed: two changes are made one after the other."""
        self.on_revoke: Callable[[str], None] = lambda _name: None
        """Called with the name of a principal that lost its key; a face cuts its connections."""

    async def load(self) -> None:
        """Take over the living keys, agents and sessions of the store, but no orphans."""
        for name in reversed(await self._rows.ended_list()):
            self._remember_ended(name)
        for key in await self._rows.key_list():
            self._take(key)
        orphans = []
        agents, unreadable = agents_of(await self._rows.agent_list())
        if unreadable:
            log.warning("agents_unreadable", agents=unreadable)
        for agent in agents:
            if self._fleet.has_parent_of(agent):
                self.admit(agent)
            else:
                orphans.append(agent.id)
        if orphans:
            log.warning("orphans_dropped", agents=orphans)
            await self._rows.agent_remove(orphans)
        await load_sessions(self._rows, self._fleet)

    def _take(self, key: ClientKey) -> None:
        self._clients[key.name] = key
        self.admit(agent_of_key(key))

    def admit(self, agent: Agent) -> None:
        """Let an agent in: its key opens the door from now on."""
        self._fleet.add(agent)
        if agent.public_key:
            self._names[agent.public_key] = agent.id
        if agent.token_hash:
            self.tokens.take(Token(agent.token_hash, agent.id, agent.public_key))

    def dismiss(self, agents: Iterable[str]) -> None:
        """Shut agents out at once, before anything is written."""
        gone = [agent for name in agents if (agent := self._fleet.get(name)) is not None]
        self._fleet.remove(agent.id for agent in gone)
        for agent in gone:
            self._names.pop(agent.public_key, None)
            self._clients.pop(agent.id, None)
            self.tokens.drop_owner(agent.id)
            self._remember_ended(agent.id)
            self.on_revoke(agent.id)

    def _remember_ended(self, name: str) -> None:
        self._ended.pop(name, None)
        self._ended[name] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.pop(next(iter(self._ended)))

    def absence(self, name: str, *, serial: int = 0) -> Reason | None:
        """Why nobody of a name is there, or not any more the one with that serial; else None."""
        present = self._fleet.principal(name)
        if present is not None and serial in (0, present.serial):
            return None
        return "revoked" if serial or name in self._ended else "unknown_agent"

    def name_of_key(self, public_key: str) -> str | None:
        """The holder of a public key, or None when no living key is registered."""
        return self._names.get(public_key)

    def bearer(self, token: str, audience: str) -> Bearer | None:
        """Who shows a bearer token; None when it does not count here and now."""
        found = self.tokens.find(token, audience)
        principal = None if found is None else self._fleet.principal(found.owner)
        return Bearer(principal, found) if principal is not None and found is not None else None

    def still(self, bearer: Bearer) -> bool:
        """Tell whether what somebody has shown before still counts."""
        return self.tokens.counts(bearer.token) and self._fleet.lives(bearer.principal)

    def seconds_left(self, bearer: Bearer) -> float:
        """How long that will count at the most."""
        expires_at = bearer.token.expires_at
        return math.inf if expires_at is None else max(0.0, expires_at - self.tokens.clock())

    def lives(self, principal: Principal) -> bool:
        """Tell whether this is still the one of its name, and not a later one."""
        return self._fleet.lives(principal)

    def key_of(self, name: str) -> str | None:
        """The public key of a living principal, or None."""
        if name == OPERATOR_ID:
            return self._operator_key
        agent = self._fleet.get(name)
        return None if agent is None else agent.public_key

    def principal(self, name: str) -> Principal | None:
        """The living principal of that name, or None."""
        return self._fleet.principal(name)

    def living(self) -> list[ClientKey]:
        """The living keys of clients by name."""
        return [self._clients[name] for name in sorted(self._clients)]

    def is_free(self, name: str) -> bool:
        """Tell whether a new principal may have this name."""
        taken = (self._fleet, self._arriving, self._unwritten, self.unrevoked)
        return name not in RESERVED and not any(name in known for known in taken)

    def arriving(self, parent: str) -> int:
        """How many children of somebody are being spawned just now."""
        return sum(1 for one in self._arriving.values() if one == parent)

    async def add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a client's key; it opens the door once it is stored.

        Raises:
            ConflictError: the name or the key is taken.
        """
        with self._reserved(name, public_key, None), anyio.CancelScope(shield=True):
            key = await self._rows.key_add(name, public_key, profile)
            self._take(key)
        return key

    async def spawn(self, agent: Agent) -> Agent:
        """Keep a new agent, and then let it in; nothing of it stays when that fails.

        It takes up its place among its parent's children from the first moment, so that two that
        are spawned at once are counted both.

        Raises:
            ConflictError: the name or the key is taken.
            UnknownAgentError: the parent was ended meanwhile.
        """
        # Shielded: one that is kept but was never let in would appear after a restart.
        with (
            self._reserved(agent.id, agent.public_key, agent.parent),
            anyio.CancelScope(shield=True),
        ):
            record = await self._rows.agent_add(_record_of(agent))
            kept = msgspec.structs.replace(agent, position=record.position)
            if not self._fleet.has_parent_of(kept):
                await self._rows.agent_remove([kept.id])
                raise UnknownAgentError(f"{agent.parent!r} was ended while it spawned")
            self.admit(kept)
        return kept

    async def update(self, agent: Agent) -> None:
        """Keep a changed agent and put the change in force.

        Raises:
            UnknownAgentError: it was ended meanwhile.
        """
        with anyio.CancelScope(shield=True):
            body = msgspec.msgpack.encode(agent.spec)
            try:
                await self._rows.agent_update(agent.id, profile=agent.spec.profile, body=body)
            except NotFoundError as error:
                raise UnknownAgentError(f"{agent.id!r} was ended meanwhile") from error
            present = self._fleet.get(agent.id)
            if present is None or present.public_key != agent.public_key:
                raise UnknownAgentError(f"{agent.id!r} was ended meanwhile")
            self._fleet.replace(agent)

    async def end(self, name: str) -> list[str]:
        """End a spawned agent and its descendants; they are shut out before anything is written.

        When the store fails they stay shut out, and ending again, any of them, writes it all.
        """
        ended = self._fleet.subtree(name) if name in self._fleet else [name]
        self._unwritten.update(ended)
        # Shielded: shutting somebody out cancels its calls, and this may be one of them.
        with anyio.CancelScope(shield=True):
            self.dismiss(ended)
            await self._forget()
        return ended

    def is_unwritten(self, name: str) -> bool:
        """Tell whether an agent was ended and the store still has to learn of it."""
        return name in self._unwritten

    async def _forget(self) -> None:
        gone = sorted(self._unwritten)
        await self._rows.agent_remove(gone)
        self._unwritten.difference_update(gone)

    async def revoke(self, name: str) -> ClientKey:
        """Take a client's key away, and end the agents that it spawned.

        Raises:
            NotFoundError: no living key has that name.
        """
        if name not in self._clients and name not in self.unrevoked:
            raise NotFoundError(f"no living key has the name {name!r}")
        ended = self._fleet.subtree(name) if name in self._clients else []
        self._unwritten.update(one for one in ended if one != name)
        self.unrevoked.add(name)
        with anyio.CancelScope(shield=True):
            self.dismiss(ended)
            key = await self._rows.key_revoke(name)
            self.unrevoked.discard(name)
            await self._forget()
        return key

    @contextmanager
    def _reserved(self, name: str, public_key: str, parent: str | None) -> Iterator[None]:
        keys = (self._names, self._arriving_keys)
        if not self.is_free(name) or any(public_key in known for known in keys):
            raise ConflictError(f"{name!r} or its key is taken", hint="choose another name")
        self._arriving[name] = parent
        self._arriving_keys.add(public_key)
        try:
            yield
        finally:
            del self._arriving[name]
            self._arriving_keys.discard(public_key)

    def is_client(self, name: str) -> bool:
        """Tell whether a principal is a client with a key of its own, and not a spawned agent."""
        return name in self._clients


def _record_of(agent: Agent) -> AgentRecord:
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


class TokenRing:
    """The tokens that count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._by_hash: dict[str, Token] = {}
        self._by_owner: dict[str, set[str]] = {}
        self.clock = clock
        self.on_drop: Callable[[Token], None] = lambda _token: None
        """Called with each token that counts no longer; a face cuts what hangs on it."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def take(self, token: Token) -> None:
        """Let a token count."""
        self._by_hash[token.hash] = token
        self._by_owner.setdefault(token.owner, set()).add(token.hash)

    def drop(self, token: Token) -> None:
        """Let a token count no longer."""
        if self._by_hash.pop(token.hash, None) is None:
            return
        left = self._by_owner[token.owner]
        left.discard(token.hash)
        if not left:
            del self._by_owner[token.owner]
        self.on_drop(token)

    def drop_owner(self, owner: str) -> None:
        """Let no token of somebody count any longer."""
        for token in self.of(owner):
            self.drop(token)

    def of(self, owner: str) -> list[Token]:
        """The tokens of one principal, older before newer."""
        found = (self._by_hash[one] for one in self._by_owner.get(owner, ()))
        return sorted(found, key=_age)

    def made(self) -> list[Token]:
        """The tokens that were made by hand, older before newer."""
        found = (one for one in self._by_hash.values() if one.expires_at is not None)
        return sorted(found, key=_age)

    def find(self, text: str, audience: str) -> Token | None:
        """The token that somebody shows, if it counts here and now."""
        if len(text) > LONGEST_TOKEN:
            return None
        shown = token_hash(text)
        # Found by its hash: how long that takes says nothing about a token.
        token = self._by_hash.get(shown)
        if token is None or not hmac.compare_digest(token.hash, shown):
            return None
        return token if token.audience in {ANYWHERE, audience} and self.counts(token) else None

    def counts(self, token: Token) -> bool:
        """Tell whether a token that was found before still counts."""
        if self._by_hash.get(token.hash) is not token:
            return False
        return token.expires_at is None or self.clock() < token.expires_at

    def expired(self) -> list[Token]:
        """Those whose time is over."""
        now = self.clock()
        return [one for one in self.made() if (one.expires_at or 0.0) <= now]


def token_hash(token: str) -> str:
    """What is kept of a bearer token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _age(token: Token) -> tuple[float, str]:
    return token.created_at, token.hash


class ForwardClock:
    """The wall clock; but when that is set back, time goes on from where it was.

    So nothing that counts until some moment counts longer than it was given. When the wall clock is
    set forward this one follows, and what lapses does so early.
    """

    def __init__(self, wall_clock: Callable[[], float], clock: Callable[[], float]) -> None:
        """Start with the present.

        Args:
            wall_clock: seconds since 1970; somebody may set it.
            clock: seconds since whenever; it never jumps.
        """
        self._wall_clock = wall_clock
        self._clock = clock
        self._read_at = clock()
        self._now = wall_clock()

    def __call__(self) -> float:
        """Seconds since 1970, never fewer than time has really passed since the last look."""
        read_at = self._clock()
        self._now = max(self._wall_clock(), self._now + read_at - self._read_at)
        self._read_at = read_at
        return self._now
