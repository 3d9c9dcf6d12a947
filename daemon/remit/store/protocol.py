"""What every store promises; `tests/contract/test_store.py` holds all of them to it.

An acknowledged write (the call returned) is durable, and every later read sees it. A write whose
caller was cancelled may or may not have happened. All methods raise `StoreError` when the store
itself cannot be read or written.
"""

from types import TracebackType
from typing import Protocol, Self

from remit.store.records import ClientKey, StateEntry, StatePage

PAGE_LIMIT = 100
PAGE_BYTES = 512 * 1024


class StateStore(Protocol):
    """The shared state: JSON values under text keys."""

    async def state_get(self, key: str) -> StateEntry | None:
        """The entry under `key`, or None."""

    async def state_set(
        self, key: str, value: object, by: str, *, expect_version: int | None = None
    ) -> StateEntry:
        """Put `value` under `key` in the name of principal `by`.

        With `expect_version` only if the key still has that version; 0 means it must not exist.

        Raises:
            ConflictError: the version is another one; `details.version` tells it.
            InvalidDataError: the key or the value cannot be stored.
            TooLargeError: the value is beyond what any store takes.
        """

    async def state_delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Remove `key`; tells whether it was there.

        Raises:
            ConflictError: `expect_version` was given and the version is another one.
        """

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


class KeyStore(Protocol):
    """The public keys of clients. Secrets never come here."""

    async def key_add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key; the name of a revoked key may be used again, its public key may not.

        Raises:
            ConflictError: a living key has that name, or any key ever had that public key.
            InvalidDataError: the name or the public key cannot be one.
        """

    async def key_revoke(self, name: str) -> ClientKey:
        """Revoke the living key of that name.

        Raises:
            NotFoundError: no living key has that name.
        """

    async def key_get(self, name: str) -> ClientKey | None:
        """The living key of that name, or None."""

    async def key_list(self, *, include_revoked: bool = False) -> tuple[ClientKey, ...]:
        """All living keys by name; with the revoked ones, older before newer."""


class Store(StateStore, KeyStore, Protocol):
    """A store is open inside `async with`, and closing it finishes what was accepted."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
