"""Those who were revoked or ended, in SQLite."""

import sqlite3
from collections.abc import Iterable

from remit.store.database import Database
from remit.store.protocol import MOST_ENDED

_INSERT = "INSERT OR REPLACE INTO ended (name, ended_at) VALUES (?, ?)"
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
    connection.executemany(_INSERT, [(name, at) for name in names])
    (stored,) = connection.execute("SELECT count(*) FROM ended").fetchone()
    if stored > MOST_ENDED:
        connection.execute(_PRUNE, (MOST_ENDED,))
