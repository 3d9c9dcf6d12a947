"""The shared state in SQLite."""

import sqlite3
from typing import Self

from remit.features.state.usage import StateUsage, find
from remit.kernel.store.checks import (
    after_prefix,
    check_quota,
    check_state_key,
    check_text,
    check_version,
    encode_value,
)
from remit.kernel.store.database import Database
from remit.kernel.store.pages import StateRow, check_page, cut_page, to_entry
from remit.kernel.store.protocol import PAGE_BYTES, PAGE_LIMIT
from remit.kernel.store.records import StateEntry, StatePage, StateQuota

Connection = sqlite3.Connection

_COLUMNS = "key, value, version, updated_at, updated_by"
_UPSERT = f"""
INSERT INTO state ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    value = excluded.value, version = excluded.version,
    updated_at = excluded.updated_at, updated_by = excluded.updated_by
"""  # noqa: S608 - the columns are ours
_COUNT = "SELECT count(*) FROM state WHERE key >= :prefix AND key < :end"
_PAGE = f"""
SELECT {_COLUMNS} FROM state
WHERE key >= :first AND key < :end ORDER BY key LIMIT :limit
"""  # noqa: S608 - the columns are ours
# SQLite sorts every blob behind every text.
_BEHIND_ALL_TEXT = b""


class SqliteState(Database):
    """See `StateStore` for what each method promises."""

    async def __aenter__(self) -> Self:
        self._usage = StateUsage()
        return await super().__aenter__()

    async def state_get(self, key: str) -> StateEntry | None:
        """The entry under `key`, or None."""
        check_state_key(key)
        return await self.read(lambda connection: _get(connection, key))

    async def state_set(
        self,
        key: str,
        value: object,
        by: str,
        *,
        expect_version: int | None = None,
        quota: StateQuota | None = None,
    ) -> StateEntry:
        """Put `value` under `key` in the name of principal `by`."""
        check_state_key(key)
        check_text(by, "$.by")
        data = encode_value(value)
        now = self.clock()

        size = len(key.encode()) + len(data)

        def write(connection: Connection) -> StateRow:
            usage = self._usage
            usage.catch_up(connection, self._commit.lost)
            found = find(connection, key)
            check_version(key, found.version, expect_version)
            if quota is not None:
                check_quota(by, quota, usage.of(by), usage.after(by, found, size))
            row = (key, data, (found.version or _floor(connection)) + 1, now, by)
            connection.execute(_UPSERT, row)
            usage.move(found, by, size)
            return row

        return to_entry(await self.write(write))

    async def state_delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Remove `key`; tells whether it was there."""
        check_state_key(key)

        def write(connection: Connection) -> bool:
            self._usage.catch_up(connection, self._commit.lost)
            found = find(connection, key)
            check_version(key, found.version, expect_version)
            if found.version:
                connection.execute("DELETE FROM state WHERE key = ?", (key,))
                connection.execute(
                    "UPDATE state_floor SET version = max(version, ?)", (found.version,)
                )
                self._usage.move(found)
            return found.version > 0

        return await self.write(write)

    async def state_list(
        self,
        prefix: str = "",
        *,
        limit: int = PAGE_LIMIT,
        after: str = "",
        max_bytes: int = PAGE_BYTES,
    ) -> StatePage:
        """Entries whose key starts with `prefix`, from behind `after`."""
        check_page(prefix, limit, after)
        end = after_prefix(prefix) or _BEHIND_ALL_TEXT
        # One lower bound, so that the index is entered there; no key holds a NUL.
        first = max(prefix, f"{after}\0") if after else prefix
        where = {"prefix": prefix, "end": end, "first": first, "limit": limit + 1}

        def read(connection: Connection) -> StatePage:
            (total,) = connection.execute(_COUNT, where).fetchone()
            return cut_page(connection.execute(_PAGE, where), total, limit, max_bytes)

        return await self.read(read)


def _get(connection: Connection, key: str) -> StateEntry | None:
    query = f"SELECT {_COLUMNS} FROM state WHERE key = ?"  # noqa: S608 - the columns are ours
    row = connection.execute(query, (key,)).fetchone()
    return None if row is None else to_entry(row)


def _floor(connection: Connection) -> int:
    (version,) = connection.execute("SELECT version FROM state_floor").fetchone()
    return int(version)
