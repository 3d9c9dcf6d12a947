"""Who holds which key. The store remembers; this keeps living keys at hand for every message."""

from collections.abc import Callable

from remit.errors import ConflictError, NotFoundError
from remit.model.principal import OPERATOR, OPERATOR_ID, Principal
from remit.store.protocol import Store
from remit.store.records import ClientKey


class KeyRing:
    """The living keys: the operator's, and those that were given a profile."""

    def __init__(self, operator_key: str) -> None:
        self._names = {operator_key: OPERATOR_ID}
        self._principals = {OPERATOR_ID: OPERATOR}
        self._keys: dict[str, ClientKey] = {}
        self.on_revoke: Callable[[str], None] = lambda _name: None
        """Called with the name of a principal that lost its key; a face cuts its connections."""

    async def load(self, store: Store) -> None:
        """Take over the living keys of the store."""
        for key in await store.key_list():
            self._take(key)

    def _take(self, key: ClientKey) -> None:
        self._keys[key.name] = key
        self._names[key.public_key] = key.name
        self._principals[key.name] = Principal(key.name, "agent", key.profile)

    def name_of_key(self, public_key: str) -> str | None:
        """The holder of a public key, or None when no living key is registered."""
        return self._names.get(public_key)

    def principal(self, name: str) -> Principal | None:
        """The living principal of that name, or None."""
        return self._principals.get(name)

    def living(self) -> list[ClientKey]:
        """The living keys by name, without the operator's."""
        return [self._keys[name] for name in sorted(self._keys)]

    async def add(self, store: Store, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key; it opens the door once it is stored.

        Raises:
            ConflictError: the name or the key is taken.
        """
        if name == OPERATOR_ID or public_key in self._names:
            raise ConflictError(f"{name!r} or its key is taken", hint="choose another name")
        key = await store.key_add(name, public_key, profile)
        self._take(key)
        return key

    async def revoke(self, store: Store, name: str) -> ClientKey:
        """Take a key away: it stops working before anything is written.

        Raises:
            NotFoundError: no living key has that name.
        """
        key = self._keys.pop(name, None)
        if key is None:
            raise NotFoundError(f"no living key has the name {name!r}")
        self._principals.pop(name, None)
        self._names.pop(key.public_key, None)
        self.on_revoke(name)
        return await store.key_revoke(name)
