"""The shared state in SQLite, and how much of it everybody has.

The usage is remembered by the thread that writes. It is added up once, and again after a
transaction that was lost: adding it up at each write would be a walk over the table, and keeping it
in the database would cost more than the write itself.
"""

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from remit.errors import ConflictError, InvalidDataError, LimitError, TooLargeError
from remit.kernel.store.rows import (
    MAX_VALUE_BYTES,
    PAGE_BYTES,
    PAGE_LIMIT,
    Rows,
    after_prefix,
    check_limit,
    check_state_key,
    check_text,
    cut,
    shown_value,
)
from remit_client.values import misfit

if TYPE_CHECKING:
    from remit.kernel.store.database import Database

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
StateRow = tuple[str, bytes, int, float, str]
"""Key, JSON, version, updated_at, updated_by: what is really kept of an entry."""
# SQLite sorts every blob behind every text.
_BEHIND_ALL_TEXT = b""
_SIZE = "length(CAST(key AS BLOB)) + length(value)"
_TOTALS = f"SELECT updated_by, count(*), sum({_SIZE}) FROM state GROUP BY updated_by"  # noqa: S608 - our own words
_FOUND = f"SELECT version, updated_by, {_SIZE} FROM state WHERE key = ?"  # noqa: S608 - our own words


class StateEntry(msgspec.Struct, frozen=True):
    """One key of the shared state.

    `version` grows with every change of the key, and a key that was deleted and made again never
    repeats one, so a version that was read once stands for exactly one value.
    """

    key: str
    value: Any
    version: int
    updated_at: float
    updated_by: str


class StatePage(msgspec.Struct, frozen=True):
    """Some entries in the order of their keys.

    `total` counts all entries under the prefix; `next` is the cursor to go on with, or None at the
    end.
    """

    items: tuple[StateEntry, ...]
    total: int
    next: str | None = None


class StateQuota(msgspec.Struct, frozen=True):
    """Keys and bytes of one owner, in use or as a limit; None: no limit.

    `bytes` are those of keys and values.
    """

    keys: int | None = None
    bytes: int | None = None


class StateRows(Rows):
    """The shared state: JSON values under text keys."""

    def __init__(self, database: "Database") -> None:
        super().__init__(database)
        self._usage = database.memory(StateUsage)

    async def state_get(self, key: str) -> StateEntry | None:
        """The entry under `key`, or None."""
        check_state_key(key)
        return await self.database.read(lambda connection: _get(connection, key))

    async def state_set(
        self,
        key: str,
        value: object,
        by: str,
        *,
        expect_version: int | None = None,
        quota: StateQuota | None = None,
    ) -> StateEntry:
        """Put `value` under `key` in the name of principal `by`.

        With `expect_version` only if the key still has that version; 0 means it must not exist.

        Raises:
            ConflictError: the version is another one; `details.version` tells it.
            InvalidDataError: the key or the value cannot be stored.
            LimitError: `by` would have written more of the state than `quota`, and more than now.
            TooLargeError: the value is beyond what any store takes.
        """
        check_state_key(key)
        check_text(by, "$.by")
        data = _encode_value(value)
        now = self.database.clock()

        size = len(key.encode()) + len(data)

        def write(connection: Connection) -> StateRow:
            usage = self._usage
            usage.catch_up(connection, self.database.lost)
            found = find(connection, key)
            _check_version(key, found.version, expect_version)
            if quota is not None:
                _check_quota(by, quota, usage.of(by), usage.after(by, found, size))
            row = (key, data, (found.version or _floor(connection)) + 1, now, by)
            connection.execute(_UPSERT, row)
            usage.move(found, by, size)
            return row

        return _to_entry(await self.database.write(write))

    async def state_delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Remove `key`; tells whether it was there.

        Raises:
            ConflictError: `expect_version` was given and the version is another one.
        """
        check_state_key(key)

        def write(connection: Connection) -> bool:
            self._usage.catch_up(connection, self.database.lost)
            found = find(connection, key)
            _check_version(key, found.version, expect_version)
            if found.version:
                connection.execute("DELETE FROM state WHERE key = ?", (key,))
                connection.execute(
                    "UPDATE state_floor SET version = max(version, ?)", (found.version,)
                )
                self._usage.move(found)
            return found.version > 0

        return await self.database.write(write)

    async def state_list(
        self,
        prefix: str = "",
        *,
        limit: int = PAGE_LIMIT,
        after: str = "",
        max_bytes: int = PAGE_BYTES,
    ) -> StatePage:
        """Entries whose key starts with `prefix`, in code point order, from behind `after`.

        A page ends after `limit` entries or before its values outgrow `max_bytes`, whichever is
        first; it holds at least one entry if there is one.
        """
        _check_page(prefix, limit, after)
        end = after_prefix(prefix) or _BEHIND_ALL_TEXT
        # One lower bound, so that the index is entered there; no key holds a NUL.
        first = max(prefix, f"{after}\0") if after else prefix
        where = {"prefix": prefix, "end": end, "first": first, "limit": limit + 1}

        def read(connection: Connection) -> StatePage:
            (total,) = connection.execute(_COUNT, where).fetchone()
            return _cut_page(connection.execute(_PAGE, where), total, limit, max_bytes)

        return await self.database.read(read)


def _get(connection: Connection, key: str) -> StateEntry | None:
    query = f"SELECT {_COLUMNS} FROM state WHERE key = ?"  # noqa: S608 - the columns are ours
    row = connection.execute(query, (key,)).fetchone()
    return None if row is None else _to_entry(row)


def _floor(connection: Connection) -> int:
    (version,) = connection.execute("SELECT version FROM state_floor").fetchone()
    return int(version)


class OwnedValue(msgspec.Struct, frozen=True):
    """The owner, size and version of a key before a write; version 0: there is none."""

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


def _encode_value(value: object) -> bytes:
    """The JSON of a state value that every format can carry.

    Raises:
        InvalidDataError: `value` has no JSON.
        TooLargeError: its JSON is beyond 16 MiB.
    """
    found = misfit(value)
    if found is not None:
        raise InvalidDataError(
            f"the value cannot be kept as JSON: {found.problem}",
            hint="send text, numbers, true, false, null, lists and mappings of these",
            details={"path": f"$.value{found.path[1:]}"},
        )
    data = msgspec.json.encode(value)
    if len(data) > MAX_VALUE_BYTES:
        raise TooLargeError(
            f"the value has {len(data):,} bytes, the store takes {MAX_VALUE_BYTES:,}",
            hint="keep large things in a file and store its path",
            details={"limit": MAX_VALUE_BYTES, "size": len(data)},
        )
    return data


def _check_page(prefix: str, limit: int, after: str) -> None:
    """Refuse what cannot be asked for."""
    check_text(prefix, "$.prefix")
    check_text(after, "$.after")
    check_limit(limit)


def _cut_page(rows: Iterable[StateRow], total: int, limit: int, max_bytes: int) -> StatePage:
    """Take a page from the front of `rows`, which must go on behind the page if the list does."""
    taken, more = cut(rows, limit, max_bytes, lambda row: len(row[1]))
    # A value that alone is too much for a page must not hide those behind it.
    items = tuple(_to_entry(row, most=max(max_bytes, PAGE_BYTES)) for row in taken)
    return StatePage(items, total, next=taken[-1][0] if more else None)


def _to_entry(row: StateRow, *, most: int | None = None) -> StateEntry:
    """The entry as callers see it; of a value of over `most` bytes only the beginning."""
    key, data, version, updated_at, updated_by = row
    return StateEntry(key, shown_value(data, most=most), version, updated_at, updated_by)


def _check_version(key: str, found: int, expected: int | None) -> None:
    """Refuse a change that was made against another version than the one in force."""
    if expected is not None and found != expected:
        state = f"has version {found}" if found else "does not exist"
        raise ConflictError(
            f"{key!r} {state}, expected {expected or 'that it does not exist'}",
            hint="read it again and repeat the change on what is there now",
            details={"key": key, "version": found, "expected": expected},
        )


def _check_quota(owner: str, quota: StateQuota, before: StateQuota, after: StateQuota) -> None:
    """Refuse a write by which somebody has more of the state than it may; less is always fine."""
    for name, most, was, now in (
        ("max_state_keys", quota.keys, before.keys or 0, after.keys or 0),
        ("max_state_bytes", quota.bytes, before.bytes or 0, after.bytes or 0),
    ):
        if most is not None and now > max(most, was):
            what = name.removeprefix("max_state_")
            raise LimitError(
                f"{owner!r} would have {now:,} {what} of the state, and {most:,} are its limit",
                hint="delete some with state:delete, or let an operator raise the limit",
                details={"limit": name, "most": most, "used": was, "retry_after": None},
            )
