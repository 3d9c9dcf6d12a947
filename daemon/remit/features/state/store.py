"""The shared state in SQLite, and how much of it everybody has.

The usage is remembered by the thread that writes. It is added up once, and again after a
transaction that was lost: adding it up at each write would be a walk over the table, and keeping it
in the database would cost more than the write itself.
"""

import sqlite3
from typing import Self

import msgspec

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
_SIZE = "length(CAST(key AS BLOB)) + length(value)"
_TOTALS = f"SELECT updated_by, count(*), sum({_SIZE}) FROM state GROUP BY updated_by"  # noqa: S608 - our own words
_FOUND = f"SELECT version, updated_by, {_SIZE} FROM state WHERE key = ?"  # noqa: S608 - our own words


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


class OwnedValue(msgspec.Struct, frozen=True):
    """What is under a key before a write; version 0: nothing."""

    version: int = 0
    owner: str = ""
    size: int = 0


class StateUsage:
    """Keys and bytes of each owner. Only the thread that writes may use it."""

    def __init__(self) -> None:
        self._owned: dict[str, tuple[int, int]] = {}
        self._lost: int | None = None

    def catch_up(self, connection: sqlite3.Connection, lost: int) -> None:
        """Add up what there is, unless that is known.

        Args:
            connection: the database.
            lost: how many transactions were lost; what is remembered may be of one of them.
        """
        if self._lost != lost:
            rows = connection.execute(_TOTALS)
            self._owned = {owner: (keys, size) for owner, keys, size in rows}
            self._lost = lost

    def of(self, owner: str) -> StateQuota:
        """What somebody has now."""
        return StateQuota(*self._owned.get(owner, (0, 0)))

    def after(self, owner: str, found: OwnedValue, size: int) -> StateQuota:
        """What somebody would have after a write of so many bytes over what is there."""
        keys, total = self._owned.get(owner, (0, 0))
        if found.version and found.owner == owner:
            return StateQuota(keys, total - found.size + size)
        return StateQuota(keys + 1, total + size)

    def move(self, found: OwnedValue, owner: str = "", size: int = 0) -> None:
        """Note a write over what was there, or with no owner that it was deleted."""
        if found.version:
            self._add(found.owner, -1, -found.size)
        if owner:
            self._add(owner, 1, size)

    def _add(self, owner: str, keys: int, size: int) -> None:
        had_keys, had_size = self._owned.get(owner, (0, 0))
        self._owned[owner] = (had_keys + keys, had_size + size)
        if self._owned[owner] == (0, 0):
            del self._owned[owner]


def find(connection: sqlite3.Connection, key: str) -> OwnedValue:
    """What is under a key."""
    row = connection.execute(_FOUND, (key,)).fetchone()
    return OwnedValue() if row is None else OwnedValue(*row)
