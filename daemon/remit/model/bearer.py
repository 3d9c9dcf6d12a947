"""A bearer token, and somebody who has shown one."""

import msgspec

from remit.model.principal import Principal

ANYWHERE = ""
"""The audience of the token that an agent was spawned with."""
ID_LENGTH = 12


class Token(msgspec.Struct, frozen=True):
    """What is known of a token; it never expires when `expires_at` is None."""

    hash: str
    owner: str
    owner_key: str
    audience: str = ANYWHERE
    created_at: float = 0.0
    expires_at: float | None = None

    @property
    def id(self) -> str:
        """What people call it by; it tells nothing that would help to guess the token."""
        return self.hash[:ID_LENGTH]


class Bearer(msgspec.Struct, frozen=True):
    """Somebody who has shown a token that counts."""

    principal: Principal
    token: Token
