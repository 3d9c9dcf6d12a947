"""Talk to a remit daemon.

    async with remit_client.connect() as remit:
        entry = await remit.call("state:set", {"key": "a", "value": 1})

`remit_client.sync.connect` is the blocking twin. Neither needs the daemon's package.
"""

from typing import TYPE_CHECKING, Any

from remit_client.errors import (
    ApprovalPending,
    BadFrame,
    BadKey,
    Cancelled,
    Conflict,
    ConnectionLost,
    Denied,
    ExceedsParent,
    Internal,
    InvalidData,
    LimitExceeded,
    NotFound,
    RemitError,
    StoreUnavailable,
    Timeout,
    TooLarge,
    Unauthorised,
    UnknownAgent,
    UnknownEvent,
    Unreachable,
    UnsupportedVersion,
)
from remit_client.keys import Key
from remit_client.wire import Answer, Progress, Push

if TYPE_CHECKING:
    from remit_client.client import Client, connect

__all__ = [
    "connect", "Client", "Key", "Answer", "Progress", "Push",
    "RemitError", "Denied", "UnknownEvent", "UnknownAgent", "ExceedsParent", "InvalidData",
    "NotFound", "Conflict", "TooLarge", "LimitExceeded", "ApprovalPending", "Timeout", "Cancelled",
    "BadFrame", "UnsupportedVersion", "StoreUnavailable", "Internal", "Unauthorised",
    "Unreachable", "ConnectionLost", "BadKey",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # anyio and libzmq cost 45 ms: the blocking twin needs no anyio, the wire structs need neither.
    if name not in ("connect", "Client"):
        raise AttributeError(f"module 'remit_client' has no attribute {name!r}")
    from remit_client import client  # noqa: PLC0415

    return getattr(client, name)
