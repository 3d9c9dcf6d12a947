"""Agents in SQLite."""

import sqlite3
from collections.abc import Sequence

import msgspec

from remit.store.checks import check_text, name_taken, public_key_taken
from remit.store.database import Database
from remit.store.fleet_checks import agent_lives, check_agent, check_size, no_such_agent
from remit.store.records import AgentRecord
from remit.store.sqlite_bills import forget_bill
from remit.store.sqlite_ended import remember_ended
from remit.store.sqlite_files import forget_files
from remit.store.sqlite_names import forget_names

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
