"""Bearer tokens in SQLite."""

import sqlite3
from collections.abc import Sequence

from remit.store.checks import check_text
from remit.store.database import Database
from remit.store.fleet_checks import check_token, token_taken
from remit.store.records import TokenRecord

_COLUMNS = "hash, owner, owner_key, audience, created_at, expires_at"


class SqliteTokens(Database):
    """See `TokenStore` for what each method promises."""

    async def token_add(self, record: TokenRecord) -> None:
        """Keep a token."""
        check_token(record)
        await self.write(lambda connection: _add(connection, record))

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


def _add(connection: sqlite3.Connection, record: TokenRecord) -> None:
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
