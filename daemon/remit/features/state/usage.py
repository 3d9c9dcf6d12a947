"""How much of the shared state everybody has, remembered by the thread that writes.

It is added up once, and again after a transaction that was lost: adding it up at each write would
be a walk over the table, and keeping it in the database would cost more than the write itself.
"""

import sqlite3

import msgspec

from remit.kernel.store.records import StateQuota

_SIZE = "length(CAST(key AS BLOB)) + length(value)"
_TOTALS = f"SELECT updated_by, count(*), sum({_SIZE}) FROM state GROUP BY updated_by"  # noqa: S608 - our own words
_FOUND = f"SELECT version, updated_by, {_SIZE} FROM state WHERE key = ?"  # noqa: S608 - our own words


class Found(msgspec.Struct, frozen=True):
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

    def after(self, owner: str, found: Found, size: int) -> StateQuota:
        """What somebody would have after a write of so many bytes over what is there."""
        keys, total = self._owned.get(owner, (0, 0))
        if found.version and found.owner == owner:
            return StateQuota(keys, total - found.size + size)
        return StateQuota(keys + 1, total + size)

    def move(self, found: Found, owner: str = "", size: int = 0) -> None:
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


def find(connection: sqlite3.Connection, key: str) -> Found:
    """What is under a key."""
    row = connection.execute(_FOUND, (key,)).fetchone()
    return Found() if row is None else Found(*row)
