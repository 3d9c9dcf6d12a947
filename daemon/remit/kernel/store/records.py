"""What the store keeps of principals and reviews. Times are seconds since the epoch."""

from typing import Literal

import msgspec


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


class AgentRecord(msgspec.Struct, frozen=True):
    """An agent as a restart needs it.

    `position` is given by the store: it grows with every agent and is never given twice. `body` is
    that of `kernel/authority` and means nothing here.
    """

    id: str
    parent: str | None
    position: int
    profile: str
    public_key: str
    token_hash: str
    created_at: float
    body: bytes


class SessionRecord(msgspec.Struct, frozen=True):
    """A session as a restart needs it; `body` is that of `kernel/authority`."""

    owner: str
    name: str
    body: bytes


ReviewStatus = Literal["pending", "approved", "rejected", "expired"]


class Review(msgspec.Struct, frozen=True):
    """Something a person has to decide; `payload` is JSON and shows them what."""

    id: str
    kind: str
    subject: str
    requested_by: str
    requested_at: float
    expires_at: float | None
    payload: bytes
    status: ReviewStatus = "pending"
    decided_by: str = ""
    decided_at: float | None = None
    note: str = ""


class TokenRecord(msgspec.Struct, frozen=True):
    """A bearer token: whose it is, where it counts and until when. The token itself is not kept."""

    hash: str
    owner: str
    owner_key: str
    """The public key that the owner had: a later principal of the same name is not the owner."""
    audience: str
    created_at: float
    expires_at: float
