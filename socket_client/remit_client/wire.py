"""The structs that travel between daemon and clients.

Frames are `[version] [kind] [body]` (the daemon's ROUTER sees a routing id before them).
Bodies of version `R1` are msgpack, of `J1` JSON; the structs are the same.
"""

from typing import Annotated, Any

import msgspec

MSGPACK_VERSION = b"R1"
JSON_VERSION = b"J1"

REQUEST = b"Q"
ANSWER = b"A"
PROGRESS = b"P"
CANCEL = b"C"
PUSH = b"E"
GAP = b"G"

RequestId = int | str
TEXT_LIMIT = 256
"""So many characters has a text of a request at the most, apart from its data."""
_Text = Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)]


class Request(msgspec.Struct):
    """A client asks for one event; `data` stays undecoded until the caller may use it."""

    id: int | _Text
    event: _Text
    data: msgspec.Raw = msgspec.Raw(b"")
    session: _Text | None = None
    min_revision: int | None = None


class Failure(msgspec.Struct, frozen=True):
    """Why a request failed: a stable code, what is wrong, and how to repair it."""

    code: str
    message: str
    hint: str = ""
    details: dict[str, Any] = {}


class Answer(msgspec.Struct, omit_defaults=True):
    """The one answer to a request, with the decision that allowed or denied it."""

    id: RequestId
    ok: bool
    data: Any = None
    error: Failure | None = None
    decision: str = ""
    revision: int = 0
    warnings: list[dict[str, str]] = []
    """What will not work for ever, such as an old name: `code`, `message`, `hint`."""


class Progress(msgspec.Struct, omit_defaults=True):
    """How far a long request has come; `total` is absent when nobody knows it."""

    id: RequestId
    done: float
    total: float | None = None
    message: str = ""


class Cancel(msgspec.Struct):
    """The client no longer wants the answer to this request."""

    id: int | _Text


class Push(msgspec.Struct):
    """An event that happened and that this client may see."""

    seq: int
    event: str
    data: Any
    origin: str
    at: float


class Gap(msgspec.Struct):
    """So many pushed events were dropped because this client read too slowly."""

    missed: int
