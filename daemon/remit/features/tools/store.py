"""Tool names that were shown, in SQLite."""

import sqlite3
from collections.abc import Mapping

from remit.kernel.store.checks import check_text
from remit.kernel.store.database import Database
from remit.kernel.store.row_checks import check_tool_names, name_given, names_full

_INSERT = "INSERT INTO tool_name (owner, event, name) VALUES (?, ?, ?)"


class SqliteNames(Database):
    """See `NameStore` for what each method promises."""

    async def name_add(self, owner: str, names: Mapping[str, str], *, limit: int) -> None:
        """Keep names of events that `owner` has none for."""
        check_tool_names(owner, names)
        rows = [(owner, event, name) for event, name in names.items()]

        def write(connection: sqlite3.Connection) -> None:
            (stored,) = connection.execute("SELECT count(*) FROM tool_name").fetchone()
            if stored + len(rows) > limit:
                raise names_full(limit)
            try:
                connection.executemany(_INSERT, rows)
            except sqlite3.IntegrityError as error:
                raise name_given(owner) from error

        await self.write(write)

    async def name_list(self, owner: str) -> dict[str, str]:
        """The names of `owner`, by event."""
        check_text(owner, "$.owner")
        query = "SELECT event, name FROM tool_name WHERE owner = ? ORDER BY event"
        return await self.read(lambda connection: dict(connection.execute(query, (owner,))))


def forget_names(connection: sqlite3.Connection, owner: str) -> None:
    """Forget the names of somebody that is gone, or was of that name before."""
    connection.execute("DELETE FROM tool_name WHERE owner = ?", (owner,))
