"""Keys, agents and their mail in memory."""

from collections.abc import Iterable, Sequence

import msgspec

from remit.kernel.store.checks import (
    check_client_key,
    check_text,
    name_taken,
    no_such_key,
    public_key_taken,
)
from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.pages import check_limit, cut
from remit.kernel.store.protocol import MOST_ENDED, PAGE_BYTES, PAGE_LIMIT
from remit.kernel.store.records import AgentRecord, ClientKey, Mail
from remit.kernel.store.row_checks import (
    agent_lives,
    check_agent,
    check_mail,
    check_size,
    check_time,
    mailbox_full,
    no_such_agent,
)
from remit.model.event import MAX_WAITING_BYTES


class MemoryKeys(MemoryTables):
    """See `KeyStore` for what each method promises."""

    async def key_add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key."""
        check_client_key(name, public_key)
        check_text(profile, "$.profile")
        if self._living_key(name) is not None:
            raise name_taken(name)
        if name in self._agents:
            raise agent_lives(name)
        self._check_new(public_key)
        self._names.pop(name, None)
        self._forget_bill(name)
        key = ClientKey(name, public_key, profile, created_at=self._clock())
        self._keys.append(key)
        return key

    async def key_revoke(self, name: str) -> ClientKey:
        """Revoke the living key of that name."""
        key = await self.key_get(name)
        if key is None:
            raise no_such_key(name)
        revoked = msgspec.structs.replace(key, revoked_at=self._clock())
        self._keys[self._keys.index(key)] = revoked
        self._remember_ended([name])
        self._forget_sessions(name)
        self._forget_tokens(name)
        self._names.pop(name, None)
        return revoked

    async def key_get(self, name: str) -> ClientKey | None:
        """The living key of that name, or None."""
        check_text(name, "$.name")
        return self._living_key(name)

    async def key_list(self, *, include_revoked: bool = False) -> tuple[ClientKey, ...]:
        """All living keys by name; with the revoked ones, older before newer."""
        shown = (key for key in self._keys if include_revoked or key.is_living)
        return tuple(sorted(shown, key=lambda key: key.name))  # stable: the order of registration

    async def ended_list(self) -> tuple[str, ...]:
        """The names of those who are gone, newest first."""
        newest = sorted(self._ended.items(), key=lambda item: (-item[1], item[0]))
        return tuple(name for name, _ in newest[:MOST_ENDED])

    def _remember_ended(self, names: Iterable[str]) -> None:
        self._ended |= dict.fromkeys(names, self._clock())

    def _living_key(self, name: str) -> ClientKey | None:
        return next((key for key in self._keys if key.name == name and key.is_living), None)

    def _check_new(self, public_key: str) -> None:
        if public_key in self._agent_keys or any(k.public_key == public_key for k in self._keys):
            raise public_key_taken()


class MemoryAgents(MemoryKeys):
    """See `AgentStore` for what each method promises."""

    async def agent_add(self, record: AgentRecord) -> AgentRecord:
        """Keep a new agent, and give it its position."""
        check_agent(record)
        if record.id in self._agents:
            raise agent_lives(record.id)
        if self._living_key(record.id) is not None:
            raise name_taken(record.id)
        self._check_new(record.public_key)
        self._agent_keys.add(record.public_key)
        self._mail = [mail for mail in self._mail if mail.to != record.id]
        self._names.pop(record.id, None)
        self._forget_bill(record.id)
        self._last_position += 1
        added = msgspec.structs.replace(record, position=self._last_position)
        self._agents[record.id] = added
        return added

    async def agent_update(self, agent: str, *, profile: str, body: bytes) -> AgentRecord:
        """Change what may change of a living agent."""
        check_text(agent, "$.id")
        check_text(profile, "$.profile")
        check_size(body, "$.body")
        if agent not in self._agents:
            raise no_such_agent(agent)
        updated = msgspec.structs.replace(self._agents[agent], profile=profile, body=body)
        self._agents[agent] = updated
        return updated

    async def agent_remove(self, agents: Sequence[str]) -> int:
        """Forget these agents, their mail, sessions and files; tells how many lived."""
        for agent in agents:
            check_text(agent, "$.ids")
        self._remember_ended(agent for agent in agents if agent in self._agents)
        for agent in agents:
            self._forget_sessions(agent)
            self._forget_tokens(agent)
            self._names.pop(agent, None)
        self._mail = [mail for mail in self._mail if mail.to not in agents]
        return sum(self._agents.pop(agent, None) is not None for agent in agents)

    async def agent_list(self) -> tuple[AgentRecord, ...]:
        """All living agents by position."""
        return tuple(self._agents.values())  # the order in which they were added


class MemoryMail(MemoryTables):
    """See `MailStore` for what each method promises."""

    async def mail_add(
        self, to: str, message: bytes, sender: str, expires_at: float,
        *, limit: int, max_bytes: int = MAX_WAITING_BYTES,
    ) -> int:  # fmt: skip
        """Keep a message for `to`; answers its id."""
        check_mail(to, message, sender, expires_at)
        now = self._clock()
        waiting = [mail for mail in self._mail if mail.to == to and mail.expires_at > now]
        size = sum(len(mail.message) for mail in waiting) + len(message)
        if len(waiting) >= limit or size > max_bytes:
            first = min((mail.expires_at for mail in waiting), default=now)
            raise mailbox_full(to, limit, max_bytes, expires_in=first - now)
        self._last_mail += 1
        self._mail.append(Mail(self._last_mail, to, sender, message, now, expires_at))
        return self._last_mail

    async def mail_take(
        self, to: str, *, now: float, limit: int = PAGE_LIMIT, max_bytes: int = PAGE_BYTES
    ) -> tuple[Mail, ...]:
        """Take the oldest messages out, without those that expired."""
        check_text(to, "$.to")
        check_limit(limit)
        check_time(now, "$.now")
        living = (mail for mail in self._mail if mail.to == to and mail.expires_at > now)
        taken, _ = cut(living, limit, max_bytes, lambda mail: len(mail.message))
        self._mail = [
            mail
            for mail in self._mail
            if mail.to != to or (mail.expires_at > now and mail not in taken)
        ]
        return tuple(taken)

    async def mail_count(self, to: str) -> int:
        """How many living messages wait for `to`."""
        check_text(to, "$.to")
        now = self._clock()
        return sum(mail.to == to and mail.expires_at > now for mail in self._mail)

    async def mail_expire(self, now: float) -> int:
        """Drop every message that expired by `now`; tells how many."""
        check_time(now, "$.now")
        before = len(self._mail)
        self._mail = [mail for mail in self._mail if mail.expires_at > now]
        return before - len(self._mail)
