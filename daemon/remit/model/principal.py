"""Who is asking. Identity comes from the connection, never from a field of a message."""

from typing import Literal

import msgspec

OPERATOR_ID = "operator"
DAEMON_ID = "daemon"
"""Stands for what happens by itself; nobody who asks has this name."""
RESERVED = frozenset({OPERATOR_ID, DAEMON_ID})
"""Names that are given to nobody."""


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
