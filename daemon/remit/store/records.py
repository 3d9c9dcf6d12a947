"""What the store keeps, as plain values. Times are seconds since the epoch."""

from typing import Any

import msgspec


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


class ClientKey(msgspec.Struct, frozen=True):
    """A public key that may connect, and the profile its holder was given."""

    name: str
    public_key: str
    profile: str
    created_at: float
    revoked_at: float | None = None

    @property
    def is_living(self) -> bool:
        """Tell whether this key still opens the door."""
        return self.revoked_at is None
