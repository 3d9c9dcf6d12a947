"""Who is asking, the tokens that prove it, and who caused a change of the configuration.

Identity comes from the connection, never from a field of a message.
"""

from typing import Literal

import msgspec

OPERATOR_ID = "operator"
DAEMON_ID = "daemon"
"""Stands for what happens by itself; nobody who asks has this name."""
RESERVED = frozenset({OPERATOR_ID, DAEMON_ID})
"""Names that are given to nobody."""
ANYWHERE = ""
"""The audience of the token that an agent was spawned with."""
ID_LENGTH = 12


class Principal(msgspec.Struct, frozen=True):
    """An authenticated caller: the operator, or the holder of a key that was given a profile."""

    id: str
    kind: Literal["operator", "agent"] = "agent"
    profile: str = ""
    serial: int = 0
    """Tells two principals apart that had the same name one after the other."""

    @property
    def is_operator(self) -> bool:
        """Tell whether this caller may do everything."""
        return self.kind == "operator"


OPERATOR = Principal(OPERATOR_ID, "operator")


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


class Cause(msgspec.Struct, frozen=True):
    """Why there is another revision, and who wanted it."""

    what: Literal[
        "files_edited",
        "signal",
        "requested",
        "started",
        "reviewed",
        "events_changed",
        "capability_made",
    ]
    by: str = DAEMON_ID
    decision: str = ""
    """The decision that let somebody ask for it."""
