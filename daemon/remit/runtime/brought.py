"""A module that was imported at run time, with the handlers that it brought."""

import sys
from typing import Any

import msgspec


class Brought(msgspec.Struct, frozen=True, eq=False):
    """The handlers of a module that was imported apart, and all that was imported for it."""

    module: str
    handlers: dict[str, Any]
    """By event, as in a `HandlerTable`."""
    imported: frozenset[str]

    def forget(self) -> None:
        """Drop the module, so that it can be brought in again; what still runs is not stopped."""
        for name in self.imported:
            sys.modules.pop(name, None)
