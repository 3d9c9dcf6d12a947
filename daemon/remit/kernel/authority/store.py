"""The rows of principals: the keys of clients, the agents that live, who is gone, their sessions.

A principal takes what it owns with it, and a newcomer of its name begins anew. Both happen in the
transaction that ends or adds the principal, so that no crash leaves half of it, and in the tables
of every feature, so that one that is not served now keeps nothing for a stranger.
"""

import re
import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from remit.errors import ConflictError, InvalidDataError, NotFoundError
from remit.kernel.store.records import AgentRecord, ClientKey, SessionRecord
from remit.kernel.store.rows import Rows, brief_text, check_size, check_text, check_time
from remit.model.grant import SessionKey
from remit.model.principal import OPERATOR_ID

Connection = sqlite3.Connection

MOST_ENDED = 10_000
"""Names of those who are gone that are remembered; the oldest go first."""
_MAX_NAME = 128
_PUBLIC_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")

_OWNED = {"session": "owner", "file_area": "owner", "tool_name": "owner", "token": "owner"}
"""What goes with a principal: tables, and the column that names it."""
_OWNED_BY_AGENTS = {"mail": "recipient"} | _OWNED
_FORMER = {"tool_name": "owner", "bill_day": "principal", "bill_turn": "principal"}
"""What a newcomer must not find of somebody who had its name."""
_FORMER_OF_AGENTS = {"mail": "recipient"} | _FORMER

_SELECT_AGENT = """
SELECT id, parent, position, profile, public_key, token_hash, created_at, body FROM agent
"""
_INSERT_AGENT = """
INSERT INTO agent (id, parent, profile, public_key, token_hash, created_at, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_UPDATE_AGENT = "UPDATE agent SET profile = ?, body = ? WHERE id = ?"
_SELECT_KEY = "SELECT name, public_key, profile, created_at, revoked_at FROM client_key"
_INSERT_KEY = "INSERT INTO client_key (name, public_key, profile, created_at) VALUES (?, ?, ?, ?)"
_REVOKE_KEY = "UPDATE client_key SET revoked_at = ? WHERE public_key = ?"
_INSERT_ENDED = "INSERT OR REPLACE INTO ended (name, ended_at) VALUES (?, ?)"
_NEWEST = "SELECT name FROM ended ORDER BY ended_at DESC, name LIMIT ?"
_PRUNE = f"DELETE FROM ended WHERE name NOT IN ({_NEWEST})"  # noqa: S608 - a constant
_PUT_SESSION = """
INSERT INTO session (owner, name, body) VALUES (?, ?, ?)
ON CONFLICT (owner, name) DO UPDATE SET body = excluded.body
"""
_FILES = "SELECT id, files FROM file_area WHERE owner = ? AND owner_key = ? AND session = ?"


class PrincipalRows(Rows):
    """The keys of clients, the agents that live, and their sessions. Secrets never come here.

    A public key is registered once, whoever had it: it never comes back as somebody else.
    """

    async def key_add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key; the name of a revoked key may be used again, its public key may not.

        Raises:
            ConflictError: a living key or agent has that name, or any ever had that public key.
            InvalidDataError: the name or the public key cannot be one.
        """
        _check_client_key(name, public_key)
        check_text(profile, "$.profile")
        key = ClientKey(name, public_key, profile, created_at=self.database.clock())
        await self.database.write(lambda connection: _add_key(connection, key))
        return key

    async def key_revoke(self, name: str) -> ClientKey:
        """Revoke the living key of that name, and forget sessions, files and names of its holder.

        Raises:
            NotFoundError: no living key has that name.
        """
        check_text(name, "$.name")
        now = self.database.clock()

        def write(connection: Connection) -> ClientKey:
            key = _living(connection, name)
            if key is None:
                raise _no_such_key(name)
            connection.execute(_REVOKE_KEY, (now, key.public_key))
            _remember_ended(connection, [name], now)
            _forget(connection, _OWNED, [name])
            return ClientKey(key.name, key.public_key, key.profile, key.created_at, revoked_at=now)

        return await self.database.write(write, is_essential=True)

    async def key_get(self, name: str) -> ClientKey | None:
        """The living key of that name, or None."""
        check_text(name, "$.name")
        return await self.database.read(lambda connection: _living(connection, name))

    async def key_list(self, *, include_revoked: bool = False) -> tuple[ClientKey, ...]:
        """All living keys by name; with the revoked ones, older before newer."""
        living = "" if include_revoked else " WHERE revoked_at IS NULL"
        query = f"{_SELECT_KEY}{living} ORDER BY name, id"
        return await self.database.read(
            lambda connection: tuple(ClientKey(*row) for row in connection.execute(query))
        )

    async def agent_add(self, record: AgentRecord) -> AgentRecord:
        """Keep a new agent, and give it its position whatever `record` says about that.

        Mail that still waits for somebody of that name is dropped: it was for another agent.

        Raises:
            ConflictError: a living agent or key has that name, or any ever had that public key.
            InvalidDataError: the id or the public key cannot be one.
        """
        _check_agent(record)
        position = await self.database.write(lambda connection: _add_agent(connection, record))
        return msgspec.structs.replace(record, position=position)

    async def agent_update(self, agent: str, *, profile: str, body: bytes) -> AgentRecord:
        """Change what may change of a living agent.

        Raises:
            NotFoundError: no living agent has that id.
        """
        check_text(agent, "$.id")
        check_text(profile, "$.profile")
        check_size(body, "$.body")

        def write(connection: Connection) -> AgentRecord:
            connection.execute(_UPDATE_AGENT, (profile, body, agent))
            row = connection.execute(f"{_SELECT_AGENT} WHERE id = ?", (agent,)).fetchone()
            if row is None:
                raise _no_such_agent(agent)
            return AgentRecord(*row)

        return await self.database.write(write)

    async def agent_remove(self, agents: Sequence[str]) -> int:
        """Forget these agents, their mail, sessions, files and tool names; tells how many lived."""
        for agent in agents:
            check_text(agent, "$.ids")
        rows = [(agent,) for agent in agents]
        now = self.database.clock()

        def write(connection: Connection) -> int:
            living = [agent for agent in agents if _agent_is_living(connection, agent)]
            _remember_ended(connection, living, now)
            _forget(connection, _OWNED_BY_AGENTS, agents)
            removed = connection.executemany("DELETE FROM agent WHERE id = ?", rows).rowcount
            return max(removed, 0)  # -1 when there was nothing to run

        return await self.database.write(write, is_essential=True)

    async def agent_list(self) -> tuple[AgentRecord, ...]:
        """All living agents by position."""
        query = f"{_SELECT_AGENT} ORDER BY position"
        return await self.database.read(
            lambda connection: tuple(AgentRecord(*row) for row in connection.execute(query))
        )

    async def ended_list(self) -> tuple[str, ...]:
        """Their names, newest first; those of the oldest are forgotten.

        A name that was given again meanwhile is among them too.
        """

        def read(connection: sqlite3.Connection) -> tuple[str, ...]:
            return tuple(name for (name,) in connection.execute(_NEWEST, (MOST_ENDED,)))

        return await self.database.read(read)

    async def session_put(self, record: SessionRecord) -> None:
        """Keep a session, in the place of the one of that owner and name.

        Raises:
            InvalidDataError: the owner or the name cannot be one.
        """
        _check_session(record)
        row = (record.owner, record.name, record.body)
        await self.database.write(lambda connection: connection.execute(_PUT_SESSION, row).rowcount)

    async def session_remove(self, sessions: Sequence[tuple[str, str]]) -> int:
        """Forget these, each an owner and a name, all at once; tells how many there were."""
        for owner, name in sessions:
            _check_session_name(owner, name)
        rows = list(sessions)
        query = "DELETE FROM session WHERE owner = ? AND name = ?"
        return await self.database.write(
            # -1 when there was nothing to run
            lambda connection: max(connection.executemany(query, rows).rowcount, 0)
        )

    async def session_list(self) -> tuple[SessionRecord, ...]:
        """All sessions, by owner and name."""
        query = "SELECT owner, name, body FROM session ORDER BY owner, name"
        return await self.database.read(
            lambda connection: tuple(SessionRecord(*row) for row in connection.execute(query))
        )

    async def file_clear(self, session: SessionKey) -> int:
        """Remove all files of a session; tells how many. They go when it is closed."""
        check_session_key(session)
        where = (session.owner, session.owner_key, session.name)

        def write(connection: Connection) -> int:
            found = connection.execute(_FILES, where).fetchone()
            if found is None:
                return 0
            connection.execute("DELETE FROM file_area WHERE id = ?", (found[0],))
            return int(found[1])

        return await self.database.write(write)


def check_session_key(session: SessionKey) -> None:
    """Refuse what is no session that could keep anything."""
    for text, field in ((session.owner, "owner"), (session.name, "session")):
        check_text(text, f"$.{field}")
        if "\0" in text:
            raise InvalidDataError("a session has no NUL in it", details={"path": f"$.{field}"})
    check_text(session.owner_key, "$.owner_key")
    if not session.owner:
        raise InvalidDataError("a session needs an owner", details={"path": "$.owner"})


def _living(connection: Connection, name: str) -> ClientKey | None:
    query = f"{_SELECT_KEY} WHERE name = ? AND revoked_at IS NULL"
    row = connection.execute(query, (name,)).fetchone()
    return None if row is None else ClientKey(*row)


def _add_key(connection: Connection, key: ClientKey) -> None:
    if _living(connection, key.name) is not None:
        raise _name_taken(key.name)
    if _agent_is_living(connection, key.name):
        raise _agent_lives(key.name)
    query = "SELECT 1 FROM client_key WHERE public_key = ?"
    found = connection.execute(query, (key.public_key,)).fetchone()
    if found is not None or _agent_had_key(connection, key.public_key):
        raise _public_key_taken()
    _forget(connection, _FORMER, [key.name])
    connection.execute(_INSERT_KEY, (key.name, key.public_key, key.profile, key.created_at))


def _agent_is_living(connection: Connection, agent: str) -> bool:
    """Tell whether that name is taken by an agent."""
    return _exists(connection, "SELECT 1 FROM agent WHERE id = ?", agent)


def _agent_had_key(connection: Connection, public_key: str) -> bool:
    """Tell whether any agent, living or gone, had that public key."""
    return _exists(connection, "SELECT 1 FROM agent_key WHERE public_key = ?", public_key)


def _add_agent(connection: Connection, record: AgentRecord) -> int:
    if _agent_is_living(connection, record.id):
        raise _agent_lives(record.id)
    query = "SELECT 1 FROM client_key WHERE name = ? AND revoked_at IS NULL"
    if _exists(connection, query, record.id):
        raise _name_taken(record.id)
    query = "SELECT 1 FROM client_key WHERE public_key = ?"
    if _agent_had_key(connection, record.public_key) or _exists(
        connection, query, record.public_key
    ):
        raise _public_key_taken()
    connection.execute("INSERT INTO agent_key (public_key) VALUES (?)", (record.public_key,))
    _forget(connection, _FORMER_OF_AGENTS, [record.id])
    row = (
        record.id,
        record.parent,
        record.profile,
        record.public_key,
        record.token_hash,
        record.created_at,
        record.body,
    )
    position = connection.execute(_INSERT_AGENT, row).lastrowid
    assert position is not None  # noqa: S101 - an INSERT of one row always has one
    return position


def _exists(connection: Connection, query: str, value: str) -> bool:
    return connection.execute(query, (value,)).fetchone() is not None


def _remember_ended(connection: sqlite3.Connection, names: Iterable[str], at: float) -> None:
    """Remember that these are gone."""
    connection.executemany(_INSERT_ENDED, [(name, at) for name in names])
    (stored,) = connection.execute("SELECT count(*) FROM ended").fetchone()
    if stored > MOST_ENDED:
        connection.execute(_PRUNE, (MOST_ENDED,))


def _forget(connection: Connection, tables: dict[str, str], names: Iterable[str]) -> None:
    rows = [(name,) for name in names]
    for table, column in tables.items():
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", rows)  # noqa: S608 - constants


def _check_agent(record: AgentRecord) -> None:
    """Refuse an agent that could be taken for another principal, or could not be kept."""
    _check_client_key(record.id, record.public_key, path="$.id")
    for field in ("parent", "profile", "token_hash"):
        check_text(getattr(record, field) or "", f"$.{field}")
    check_time(record.created_at, "$.created_at")
    check_size(record.body, "$.body")


def _check_client_key(name: str, public_key: str, *, path: str = "$.name") -> None:
    """Refuse a name that could be taken for another principal, and what is no CURVE key."""
    if name == OPERATOR_ID:
        raise ConflictError(f"{name!r} is the operator's own name", hint="choose another name")
    if not name.isprintable() or name != name.strip() or not 0 < len(name) <= _MAX_NAME:
        raise InvalidDataError(
            f"{brief_text(name)} cannot be the name of a key or an agent",
            hint=f"write 1 to {_MAX_NAME} printable characters, as in 'reviewer-1'",
            details={"path": path},
        )
    if not _PUBLIC_KEY.fullmatch(public_key):
        raise InvalidDataError(
            "that is not a CURVE public key",
            hint="send the 40 Z85 characters of the public key; never the secret one",
            details={"path": "$.public_key"},
        )


def _check_session(record: SessionRecord) -> None:
    """Refuse a session that could not be kept or found."""
    _check_session_name(record.owner, record.name)
    check_size(record.body, "$.body")


def _check_session_name(owner: str, name: str) -> None:
    """Refuse what is no owner, or no name of a session."""
    check_text(owner, "$.owner")
    check_text(name, "$.session")
    if not owner or not name or "\0" in owner + name:
        raise InvalidDataError("a session needs an owner and a name", details={"path": "$.session"})


def _agent_lives(agent: str) -> ConflictError:
    """The refusal of a second principal under the name of an agent."""
    return ConflictError(
        f"an agent named {agent!r} lives already",
        hint="choose another name, or terminate that agent first",
        details={"id": agent},
    )


def _no_such_agent(agent: str) -> NotFoundError:
    """The answer to changing what does not live."""
    return NotFoundError(
        f"no living agent is named {agent!r}",
        hint="'remit agents' shows those that live",
        details={"id": agent},
    )


def _name_taken(name: str) -> ConflictError:
    """The refusal of a second living key of one name."""
    return ConflictError(
        f"a key named {name!r} exists already",
        hint=f"choose another name, or run 'remit key revoke {name}' first",
        details={"name": name},
    )


def _public_key_taken() -> ConflictError:
    """The refusal of a public key that was seen before; it does not tell whose it is."""
    return ConflictError(
        "this public key was registered before",
        hint="make a new key pair; a public key is registered once, also after revocation",
    )


def _no_such_key(name: str) -> NotFoundError:
    """The answer to revoking what does not live."""
    return NotFoundError(
        f"no living key is named {name!r}",
        hint="'remit key list' shows the names",
        details={"name": name},
    )
