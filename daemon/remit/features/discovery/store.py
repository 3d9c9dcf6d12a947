"""What use has taught, in SQLite."""

import sqlite3
from collections.abc import Mapping, Sequence

from remit.kernel.store.rows import Rows, check_text

_PUT = """
INSERT INTO lesson (tenant, name, body) VALUES (?, ?, ?)
ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body
"""


class LessonRows(Rows):
    """What use has taught, each lesson with a name and a body that means nothing here."""

    async def lesson_write(
        self, tenant: str, put: Mapping[str, bytes], removed: Sequence[str]
    ) -> None:
        """Keep and forget lessons of a tenant, all at once."""
        for name in (tenant, *put, *removed):
            check_text(name, "$.name")
        gone = [(tenant, name) for name in removed]
        kept = [(tenant, name, body) for name, body in put.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM lesson WHERE tenant = ? AND name = ?", gone)
            connection.executemany(_PUT, kept)

        await self.database.write(write)

    async def lesson_list(self, tenant: str) -> dict[str, bytes]:
        """All lessons of a tenant, by name."""
        query = "SELECT name, body FROM lesson WHERE tenant = ? ORDER BY name"
        return await self.database.read(
            lambda connection: dict(connection.execute(query, (tenant,)))
        )
