"""The keys of clients in SQLite."""

import sqlite3

from remit.store.checks import (
    check_client_key,
    check_text,
    name_taken,
    no_such_key,
    public_key_taken,
)
from remit.store.database import Database
from remit.store.fleet_checks import agent_lives
from remit.store.records import ClientKey
from remit.store.sqlite_agents import agent_had_key, agent_is_living
from remit.store.sqlite_bills import forget_bill
from remit.store.sqlite_ended import remember_ended
from remit.store.sqlite_files import forget_files
from remit.store.sqlite_names import forget_names

Connection = sqlite3.Connection

_SELECT = "SELECT name, public_key, profile, created_at, revoked_at FROM client_key"


class SqliteKeys(Database):
    """See `KeyStore` for what each method promises."""

    async def key_add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key."""
        check_client_key(name, public_key)
        check_text(profile, "$.profile")
        key = ClientKey(name, public_key, profile, created_at=self.clock())
        await self.write(lambda connection: _add(connection, key))
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
        query = f"{_SELECT}{living} ORDER BY name, id"
        return await self.read(
            lambda connection: tuple(ClientKey(*row) for row in connection.execute(query))
        )


def _living(connection: Connection, name: str) -> ClientKey | None:
    query = f"{_SELECT} WHERE name = ? AND revoked_at IS NULL"
    row = connection.execute(query, (name,)).fetchone()
    return None if row is None else ClientKey(*row)


def _add(connection: Connection, key: ClientKey) -> None:
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
