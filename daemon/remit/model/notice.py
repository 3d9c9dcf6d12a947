"""Something that happened and that those who may see it are told."""

from typing import Any

import msgspec

from remit.model.limits import Limits

STATE = "state:"
"""How the events begin that are about one key of the shared state."""


# Untracked, because one is made for every emit: what it carries never points back at it.
class Notice(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An event on its way to any number of listeners."""

    event: str
    data: Any
    origin: str
    """Who caused it."""
    at: float

    def is_within(self, limits: Limits) -> bool:
        """Tell whether it is about nothing that somebody under these limits must not know of.

        What is told about the shared state carries the key; without one, nobody can tell where it
        lies, and who is limited to a part of the state is not told.
        """
        if limits.state_prefixes is None or not self.event.startswith(STATE):
            return True
        key = self.data.get("key") if isinstance(self.data, dict) else None
        return isinstance(key, str) and limits.allow_key(key)


# Messages from one agent to another: the event that carries them, and their bounds.


DIRECT_EVENT = "message:direct"
MAX_WAITING = 100
MAX_WAITING_BYTES = 2 << 20
"""Of all that waits for one agent."""
KEEP_SECONDS = 24 * 3600.0
MESSAGE_BYTES = 65_536
