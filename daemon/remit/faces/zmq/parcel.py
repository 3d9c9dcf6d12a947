"""A pushed event that is encoded once, however many clients get it."""

from typing import Any

import msgspec

from remit.faces.zmq.frames import MSGPACK, Codec

_MSGPACK_HEAD = b"\x85\xa3seq"  # a map of five, whose first key is "seq"
_JSON_HEAD = b'{"seq":'


class _Tail(msgspec.Struct):
    """`wire.Push` without `seq`, which is the only field that differs between clients."""

    event: str
    data: Any
    origin: str
    at: float


class Parcel:
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
