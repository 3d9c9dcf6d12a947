"""A store without a file, for tests. It keeps the whole contract except surviving the process."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from types import TracebackType
from typing import Self

from remit.store.checks import (
    after_prefix,
    check_client_key,
    check_state_key,
    check_text,
    check_version,
    encode_value,
    name_taken,
    no_such_key,
    public_key_taken,
)
from remit.store.pages import StateRow, check_page, cut_page, to_entry
from remit.store.protocol import PAGE_BYTES, PAGE_LIMIT
from remit.store.records import ClientKey, StateEntry, StatePage


class MemoryStore:
    """Values are kept as JSON, as in a file, so that nobody shares a list with the store."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._rows: dict[str, StateRow] = {}
        self._floor = 0
        self._keys: list[ClientKey] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    async def state_get(self, key: str) -> StateEntry | None:
        """The entry under `key`, or None."""
        check_state_key(key)
        row = self._rows.get(key)
        return None if row is None else to_entry(row)

    async def state_set(
        self, key: str, value: object, by: str, *, expect_version: int | None = None
    ) -> StateEntry:
        """Put `value` under `key` in the name of principal `by`."""
        check_state_key(key)
        check_text(by, "$.by")
        data = encode_value(value)
        found = self._version(key)
        check_version(key, found, expect_version)
        row = (key, data, (found or self._floor) + 1, self._clock(), by)
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

    async def key_add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key."""
        check_client_key(name, public_key)
        check_text(profile, "$.profile")
        if await self.key_get(name) is not None:
            raise name_taken(name)
        if any(key.public_key == public_key for key in self._keys):
            raise public_key_taken()
        key = ClientKey(name, public_key, profile, created_at=self._clock())
        self._keys.append(key)
        return key

    async def key_revoke(self, name: str) -> ClientKey:
        """Revoke the living key of that name."""
        key = await self.key_get(name)
        if key is None:
            raise no_such_key(name)
        revoked = ClientKey(
            key.name, key.public_key, key.profile, key.created_at, revoked_at=self._clock()
        )
        self._keys[self._keys.index(key)] = revoked
        return revoked

    async def key_get(self, name: str) -> ClientKey | None:
        """The living key of that name, or None."""
        check_text(name, "$.name")
        return next((key for key in self._keys if key.name == name and key.is_living), None)

    async def key_list(self, *, include_revoked: bool = False) -> tuple[ClientKey, ...]:
        """All living keys by name; with the revoked ones, older before newer."""
        shown = (key for key in self._keys if include_revoked or key.is_living)
        return tuple(sorted(shown, key=lambda key: key.name))  # stable: the order of registration

    def _version(self, key: str) -> int:
        row = self._rows.get(key)
        return 0 if row is None else row[2]
