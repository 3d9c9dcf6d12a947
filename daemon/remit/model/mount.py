"""A file that a capability brings into the session file system of those who hold it."""

from typing import Any

import msgspec

MAX_MOUNTS = 32
MAX_MOUNT_BYTES = 65_536


class Mount(msgspec.Struct, frozen=True):
    """One file."""

    path: str
    content: bytes
    read_only: bool = True
    """False: a holder may change it in its own session, and only there."""

    def to_json(self) -> dict[str, Any]:
        """What counts when definitions are compared."""
        return msgspec.structs.asdict(self)
