"""The shared state in memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from remit.kernel.store.checks import (
    after_prefix,
    check_quota,
    check_state_key,
    check_text,
    check_version,
    encode_value,
)
from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.pages import StateRow, check_page, cut_page, to_entry
from remit.kernel.store.protocol import PAGE_BYTES, PAGE_LIMIT
from remit.kernel.store.records import StateEntry, StatePage, StateQuota


class MemoryState(MemoryTables):
    """Values are kept as JSON, as in a file, so that nobody shares a list with the store."""

    async def state_get(self, key: str) -> StateEntry | None:
        """The entry under `key`, or None."""
        check_state_key(key)
        row = self._rows.get(key)
        return None if row is None else to_entry(row)

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
        found = self._version(key)
        check_version(key, found, expect_version)
        row = (key, data, (found or self._floor) + 1, self._clock(), by)
        if quota is not None:
            after = _usage(by, (self._rows | {key: row}).values())
            check_quota(by, quota, _usage(by, self._rows.values()), after)
        self._rows[key] = row
        return to_entry(row)

    async def state_delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Remove `key`; tells whether it was there."""
        check_state_key(key)
        found = self._version(key)
        check_version(key, found, expect_version)
        self._floor = max(self._floor, found)
        return self._rows.pop(key, None) is not None

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
        keys = sorted(self._rows)
        first = bisect_left(keys, prefix)
        end = after_prefix(prefix)
        stop = len(keys) if end is None else bisect_left(keys, end)
        start = max(first, bisect_right(keys, after))
        rows = (self._rows[key] for key in keys[start:stop])
        return cut_page(rows, stop - first, limit, max_bytes)

    def _version(self, key: str) -> int:
        row = self._rows.get(key)
        return 0 if row is None else row[2]


def _usage(owner: str, rows: Iterable[StateRow]) -> StateQuota:
    sizes = [len(key.encode()) + len(data) for key, data, _, _, by in rows if by == owner]
    return StateQuota(len(sizes), sum(sizes))
