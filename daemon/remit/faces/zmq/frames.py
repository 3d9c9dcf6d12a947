"""Bodies of frames: what clients may send, and how answers are written."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from remit_client.wire import (
    JSON_VERSION,
    MSGPACK_VERSION,
    Answer,
    Cancel,
    Failure,
    Request,
    RequestId,
)

# msgspec lets bad UTF-8 and deep nesting out as these two instead of its own errors.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)

NO_ID: RequestId = ""
"""The id of an answer to a message whose id could not be read."""


class Codec(msgspec.Struct, frozen=True):
    """One wire format: its version frame, and its ways in and out."""

    version: bytes
    format: Literal["msgpack", "json"]
    request: Callable[[bytes], Request]
    cancel: Callable[[bytes], Cancel]
    encode: Callable[[Any], bytes]


MSGPACK = Codec(
    version=MSGPACK_VERSION,
    format="msgpack",
    request=msgspec.msgpack.Decoder(Request).decode,
    cancel=msgspec.msgpack.Decoder(Cancel).decode,
    encode=msgspec.msgpack.Encoder().encode,
)
JSON = Codec(
    version=JSON_VERSION,
    format="json",
    request=msgspec.json.Decoder(Request).decode,
    cancel=msgspec.json.Decoder(Cancel).decode,
    encode=msgspec.json.Encoder().encode,
)
CODECS = {MSGPACK.version: MSGPACK, JSON.version: JSON}


def codec_for(version: bytes) -> Codec:
    """The format that a client of this version can most likely read."""
    return CODECS.get(version) or (JSON if version[:1] == b"J" else MSGPACK)


def find_id(codec: Codec, body: bytes) -> RequestId:
    """The id inside a body that is otherwise not to be used, or `NO_ID`."""
    try:
        return codec.cancel(body).id
    except UNREADABLE:
        return NO_ID


def failed(
    request_id: RequestId, code: str, message: str, *, hint: str = "", **details: object
) -> Answer:
    """An answer that says no."""
    return Answer(id=request_id, ok=False, error=Failure(code, message, hint, details))


def bad_frame(request_id: RequestId, message: str, *, hint: str) -> Answer:
    """An answer to a message that is not understood."""
    return failed(request_id, "bad_frame", message, hint=hint)


def encode_answer(codec: Codec, answer: Answer, *, limit: int) -> bytes:
    """Write an answer; one that cannot be written becomes a failure that can."""
    try:
        body = codec.encode(answer)
    except _UNWRITABLE as error:
        return codec.encode(_with_failure(answer, "internal", f"the answer has no form: {error}"))
    if len(body) <= limit:
        return body
    message = f"the answer has {len(body)} bytes, at most {limit} fit"
    hint = "ask for less at once, for instance with a limit or a narrower prefix"
    return codec.encode(_with_failure(answer, "too_large", message, hint))


def _with_failure(answer: Answer, code: str, message: str, hint: str = "") -> Answer:
    return Answer(
        id=answer.id,
        ok=False,
        error=Failure(code, message, hint),
        decision=answer.decision,
        revision=answer.revision,
    )


# A pushed event that is encoded once, however many clients get it.


_MSGPACK_HEAD = b"\x85\xa3seq"  # a map of five, whose first key is "seq"
_JSON_HEAD = b'{"seq":'


class _Tail(msgspec.Struct):
    """`wire.Push` without `seq`, which is the only field that differs between clients."""

    event: str
    data: Any
    origin: str
    at: float


class PushFrame:
    """One event on its way to any number of clients."""

    __slots__ = ("_tail", "_tails")

    def __init__(self, event: str, data: Any, *, origin: str, at: float) -> None:
        self._tail = _Tail(event, data, origin, at)
        self._tails: dict[bytes, bytes] = {}

    def encode(self, codec: Codec, seq: int) -> bytes:
        """The body of an `E` frame with this sequence number."""
        tail = self._tails.get(codec.version)
        if tail is None:
            # Either format opens a map with one byte, which the head replaces.
            tail = self._tails[codec.version] = codec.encode(self._tail)[1:]
        if codec is MSGPACK:
            return _MSGPACK_HEAD + codec.encode(seq) + tail
        return b"%s%d,%s" % (_JSON_HEAD, seq, tail)
