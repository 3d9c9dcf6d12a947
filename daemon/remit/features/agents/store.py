"""Agents in SQLite."""

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from remit.features.bill.store import forget_bill
from remit.features.files.store import forget_files
from remit.features.tools.store import forget_names
from remit.kernel.store.checks import (
    check_client_key,
    check_text,
    name_taken,
    no_such_key,
    public_key_taken,
)
from remit.kernel.store.database import Database
from remit.kernel.store.protocol import MOST_ENDED
from remit.kernel.store.records import AgentRecord, ClientKey, TokenRecord
from remit.kernel.store.row_checks import (
    agent_lives,
    check_agent,
    check_size,
    check_token,
    no_such_agent,
    token_taken,
)

# Bearer tokens in SQLite.


_COLUMNS = "hash, owner, owner_key, audience, created_at, expires_at"


class SqliteTokens(Database):
    """See `TokenStore` for what each method promises."""

    async def token_add(self, record: TokenRecord) -> None:
        """Keep a token."""
        check_token(record)
        await self.write(lambda connection: _add_token(connection, record))

    async def token_remove(self, hashes: Sequence[str]) -> int:
        """Forget these; tells how many there were."""
        for one in hashes:
            check_text(one, "$.hash")
        rows = [(one,) for one in hashes]
        query = "DELETE FROM token WHERE hash = ?"
        return await self.write(
            # -1 when there was nothing to run
            lambda connection: max(connection.executemany(query, rows).rowcount, 0),
            is_essential=True,
        )

    async def token_list(self) -> tuple[TokenRecord, ...]:
        """All tokens, older before newer."""
        query = f"SELECT {_COLUMNS} FROM token ORDER BY created_at, hash"  # noqa: S608 - constants
        return await self.read(
            lambda connection: tuple(TokenRecord(*row) for row in connection.execute(query))
        )


def _add_token(connection: sqlite3.Connection, record: TokenRecord) -> None:
    if connection.execute("SELECT 1 FROM token WHERE hash = ?", (record.hash,)).fetchone():
        raise token_taken()
    row = (
        record.hash,
        record.owner,
        record.owner_key,
        record.audience,
        record.created_at,
        record.expires_at,
    )
    connection.execute(f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608


# Those who were revoked or ended, in SQLite.


_INSERT_SQLITE_ENDED = "INSERT OR REPLACE INTO ended (name, ended_at) VALUES (?, ?)"
_NEWEST = "SELECT name FROM ended ORDER BY ended_at DESC, name LIMIT ?"
_PRUNE = f"DELETE FROM ended WHERE name NOT IN ({_NEWEST})"  # noqa: S608 - a constant


class SqliteEnded(Database):
    """See `EndedStore` for what each method promises."""

    async def ended_list(self) -> tuple[str, ...]:
        """The names of those who are gone, newest first."""

        def read(connection: sqlite3.Connection) -> tuple[str, ...]:
            return tuple(name for (name,) in connection.execute(_NEWEST, (MOST_ENDED,)))

        return await self.read(read)


def remember_ended(connection: sqlite3.Connection, names: Iterable[str], at: float) -> None:
    """Remember that these are gone."""
    connection.executemany(_INSERT_SQLITE_ENDED, [(name, at) for name in names])
    (stored,) = connection.execute("SELECT count(*) FROM ended").fetchone()
    if stored > MOST_ENDED:
        connection.execute(_PRUNE, (MOST_ENDED,))


Connection = sqlite3.Connection

_SELECT = """
SELECT id, parent, position, profile, public_key, token_hash, created_at, body FROM agent
"""
_INSERT = """
INSERT INTO agent (id, parent, profile, public_key, token_hash, created_at, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_UPDATE = "UPDATE agent SET profile = ?, body = ? WHERE id = ?"


class SqliteAgents(Database):
    """See `AgentStore` for what each method promises."""

    async def agent_add(self, record: AgentRecord) -> AgentRecord:
        """Keep a new agent, and give it its position."""
        check_agent(record)
        position = await self.write(lambda connection: _add(connection, record))
        return msgspec.structs.replace(record, position=position)

    async def agent_update(self, agent: str, *, profile: str, body: bytes) -> AgentRecord:
        """Change what may change of a living agent."""
        check_text(agent, "$.id")
        check_text(profile, "$.profile")
        check_size(body, "$.body")

        def write(connection: Connection) -> AgentRecord:
            connection.execute(_UPDATE, (profile, body, agent))
            row = connection.execute(f"{_SELECT} WHERE id = ?", (agent,)).fetchone()
            if row is None:
                raise no_such_agent(agent)
            return AgentRecord(*row)

        return await self.write(write)

    async def agent_remove(self, agents: Sequence[str]) -> int:
        """Forget these agents, their mail, sessions and files; tells how many lived."""
        for agent in agents:
            check_text(agent, "$.ids")
        rows = [(agent,) for agent in agents]
        now = self.clock()

        def write(connection: Connection) -> int:
            living = [agent for agent in agents if agent_is_living(connection, agent)]
            remember_ended(connection, living, now)
            connection.executemany("DELETE FROM mail WHERE recipient = ?", rows)
            connection.executemany("DELETE FROM session WHERE owner = ?", rows)
            for agent in agents:
                forget_files(connection, agent)
                forget_names(connection, agent)
            connection.executemany("DELETE FROM token WHERE owner = ?", rows)
            removed = connection.executemany("DELETE FROM agent WHERE id = ?", rows).rowcount
            return max(removed, 0)  # -1 when there was nothing to run

        return await self.write(write, is_essential=True)

    async def agent_list(self) -> tuple[AgentRecord, ...]:
        """All living agents by position."""
        query = f"{_SELECT} ORDER BY position"
        return await self.read(
            lambda connection: tuple(AgentRecord(*row) for row in connection.execute(query))
        )


def agent_is_living(connection: Connection, agent: str) -> bool:
    """Tell whether that name is taken by an agent."""
    return _exists(connection, "SELECT 1 FROM agent WHERE id = ?", agent)


def agent_had_key(connection: Connection, public_key: str) -> bool:
    """Tell whether any agent, living or gone, had that public key."""
    return _exists(connection, "SELECT 1 FROM agent_key WHERE public_key = ?", public_key)


def _add(connection: Connection, record: AgentRecord) -> int:
    if agent_is_living(connection, record.id):
        raise agent_lives(record.id)
    query = "SELECT 1 FROM client_key WHERE name = ? AND revoked_at IS NULL"
    if _exists(connection, query, record.id):
        raise name_taken(record.id)
    query = "SELECT 1 FROM client_key WHERE public_key = ?"
    if agent_had_key(connection, record.public_key) or _exists(
        connection, query, record.public_key
    ):
        raise public_key_taken()
    connection.execute("INSERT INTO agent_key (public_key) VALUES (?)", (record.public_key,))
    connection.execute("DELETE FROM mail WHERE recipient = ?", (record.id,))
    forget_names(connection, record.id)
    forget_bill(connection, record.id)
    row = (
        record.id,
        record.parent,
        record.profile,
        record.public_key,
        record.token_hash,
        record.created_at,
        record.body,
    )
    position = connection.execute(_INSERT, row).lastrowid
    assert position is not None  # noqa: S101 - an INSERT of one row always has one
    return position


def _exists(connection: Connection, query: str, value: str) -> bool:
    return connection.execute(query, (value,)).fetchone() is not None


# The keys of clients in SQLite.


_SELECT_KEY = "SELECT name, public_key, profile, created_at, revoked_at FROM client_key"


class SqliteKeys(Database):
    """See `KeyStore` for what each method promises."""

    async def key_add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key."""
        check_client_key(name, public_key)
        check_text(profile, "$.profile")
        key = ClientKey(name, public_key, profile, created_at=self.clock())
        await self.write(lambda connection: _add_key(connection, key))
        return key

    async def key_revoke(self, name: str) -> ClientKey:
        """Revoke the living key of that name."""
        check_text(name, "$.name")
        now = self.clock()

        def write(connection: Connection) -> ClientKey:
            key = _living(connection, name)
            if key is None:
                raise no_such_key(name)
            connection.execute(
                "UPDATE client_key SET revoked_at = ? WHERE public_key = ?", (now, key.public_key)
            )
            remember_ended(connection, [name], now)
            connection.execute("DELETE FROM session WHERE owner = ?", (name,))
            forget_files(connection, name)
            forget_names(connection, name)
            connection.execute("DELETE FROM token WHERE owner = ?", (name,))
            return ClientKey(key.name, key.public_key, key.profile, key.created_at, revoked_at=now)

        return await self.write(write, is_essential=True)

    async def key_get(self, name: str) -> ClientKey | None:
        """The living key of that name, or None."""
        check_text(name, "$.name")
        return await self.read(lambda connection: _living(connection, name))

    async def key_list(self, *, include_revoked: bool = False) -> tuple[ClientKey, ...]:
        """All living keys by name; with the revoked ones, older before newer."""
        living = "" if include_revoked else " WHERE revoked_at IS NULL"
        query = f"{_SELECT_KEY}{living} ORDER BY name, id"
        return await self.read(
            lambda connection: tuple(ClientKey(*row) for row in connection.execute(query))
        )


def _living(connection: Connection, name: str) -> ClientKey | None:
    query = f"{_SELECT_KEY} WHERE name = ? AND revoked_at IS NULL"
    row = connection.execute(query, (name,)).fetchone()
    return None if row is None else ClientKey(*row)


def _add_key(connection: Connection, key: ClientKey) -> None:
    if _living(connection, key.name) is not None:
        raise name_taken(key.name)
    if agent_is_living(connection, key.name):
        raise agent_lives(key.name)
    query = "SELECT 1 FROM client_key WHERE public_key = ?"
    found = connection.execute(query, (key.public_key,)).fetchone()
    if found is not None or agent_had_key(connection, key.public_key):
        raise public_key_taken()
    forget_names(connection, key.name)
    forget_bill(connection, key.name)
    connection.execute(
        "INSERT INTO client_key (name, public_key, profile, created_at) VALUES (?, ?, ?, ?)",
        (key.name, key.public_key, key.profile, key.created_at),
    )
