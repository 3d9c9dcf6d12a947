"""Sessions in SQLite."""

from collections.abc import Sequence

from remit.kernel.store.database import Database
from remit.kernel.store.records import SessionRecord
from remit.kernel.store.row_checks import check_session, check_session_name

_PUT = """
INSERT INTO session (owner, name, body) VALUES (?, ?, ?)
ON CONFLICT (owner, name) DO UPDATE SET body = excluded.body
"""


class SqliteSessions(Database):
    """See `SessionStore` for what each method promises."""

    async def session_put(self, record: SessionRecord) -> None:
        """Keep a session, in the place of the one of that owner and name."""
        check_session(record)
        row = (record.owner, record.name, record.body)
        await self.write(lambda connection: connection.execute(_PUT, row).rowcount)

    async def session_remove(self, sessions: Sequence[tuple[str, str]]) -> int:
        """Forget these, each an owner and a name; tells how many there were."""
        for owner, name in sessions:
            check_session_name(owner, name)
        rows = list(sessions)
        query = "DELETE FROM session WHERE owner = ? AND name = ?"
        return await self.write(
            # -1 when there was nothing to run
            lambda connection: max(connection.executemany(query, rows).rowcount, 0)
        )

    async def session_list(self) -> tuple[SessionRecord, ...]:
        """All sessions, by owner and name."""
        query = "SELECT owner, name, body FROM session ORDER BY owner, name"
        return await self.read(
            lambda connection: tuple(SessionRecord(*row) for row in connection.execute(query))
        )
