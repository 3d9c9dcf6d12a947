"""Bearer tokens, by their hashes."""

import sqlite3
from collections.abc import Sequence

from remit.errors import ConflictError, InvalidDataError
from remit.kernel.store.records import TokenRecord
from remit.kernel.store.rows import Rows, check_text, check_time

_COLUMNS = "hash, owner, owner_key, audience, created_at, expires_at"


class TokenRows(Rows):
    """Bearer tokens by their hashes. Those of a client or agent go with it."""

    async def token_add(self, record: TokenRecord) -> None:
        """Keep a token.

        Raises:
            ConflictError: that hash is there already.
        """
        _check_token(record)
        await self.database.write(lambda connection: _add_token(connection, record))

    async def token_remove(self, hashes: Sequence[str]) -> int:
        """Forget these; tells how many there were."""
        for one in hashes:
            check_text(one, "$.hash")
        rows = [(one,) for one in hashes]
        query = "DELETE FROM token WHERE hash = ?"
        return await self.database.write(
            # -1 when there was nothing to run
            lambda connection: max(connection.executemany(query, rows).rowcount, 0),
            is_essential=True,
        )

    async def token_list(self) -> tuple[TokenRecord, ...]:
        """All tokens, older before newer."""
        query = f"SELECT {_COLUMNS} FROM token ORDER BY created_at, hash"  # noqa: S608 - constants
        return await self.database.read(
            lambda connection: tuple(TokenRecord(*row) for row in connection.execute(query))
        )


def _add_token(connection: sqlite3.Connection, record: TokenRecord) -> None:
    if connection.execute("SELECT 1 FROM token WHERE hash = ?", (record.hash,)).fetchone():
        raise _token_taken()
    row = (
        record.hash,
        record.owner,
        record.owner_key,
        record.audience,
        record.created_at,
        record.expires_at,
    )
    connection.execute(f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608


def _check_token(record: TokenRecord) -> None:
    """Refuse a token that could not be kept or found."""
    for field in ("hash", "owner", "owner_key", "audience"):
        check_text(getattr(record, field), f"$.{field}")
    if not record.hash or not record.owner:
        raise InvalidDataError("a token needs a hash and an owner", details={"path": "$.hash"})
    check_time(record.created_at, "$.created_at")
    check_time(record.expires_at, "$.expires_at")


def _token_taken() -> ConflictError:
    """Two tokens have one hash: they are the same."""
    return ConflictError("that token is there already")
