"""Something that happened and that those who may see it are told."""

from typing import Any

import msgspec


class Notice(msgspec.Struct, frozen=True, eq=False):
    """An event on its way to any number of listeners."""

    event: str
    data: Any
    origin: str
    """Who caused it."""
    at: float
