"""Bytes of a server cut into lines, none of them kept beyond a limit.

A line that is too long is not kept while it is read: of it remain the beginning and the end, where
the id of the request that it answers stands, so that this request can be told.
"""

import re
from collections import deque

import msgspec

_KEPT = 512
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]){1,64}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_AT_START = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
# The last brace closes the message itself: what stands right before it is no part of a result.
_AT_END = re.compile(rb",\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")


class Line(msgspec.Struct, frozen=True):
    """One line; when it was too long only its beginning and its end."""

    start: bytes
    end: bytes = b""
    size: int = 0
    whole: bool = True

    def request(self) -> int | str | None:
        """The id of the request that it answers, if it can be told without reading all of it."""
        found = _AT_START.match(self.start) or _AT_END.search(self.end or self.start)
        return None if found is None else msgspec.json.decode(found[1], type=int | str)


class Lines:
    """Takes pieces, gives lines."""

    def __init__(self, *, longest: int) -> None:
        self._longest = longest
        self._start = bytearray()
        self._end = b""
        self._size = 0
        self._done: deque[Line] = deque()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes; at most as many lines as these have are kept."""
        *ends, rest = piece.split(b"\n")
        for part in ends:
            self._add(part)
            self._finish()
        self._add(rest)

    def take(self) -> Line | None:
        """The next line, if one is complete."""
        return self._done.popleft() if self._done else None

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        room = self._longest - len(self._start)
        self._start += part[:room]
        if self._size > self._longest:
            self._end = (self._end + part[-_KEPT:])[-_KEPT:]

    def _finish(self) -> None:
        whole = self._size <= self._longest
        start = bytes(self._start) if whole else bytes(self._start[:_KEPT])
        if start.strip():
            self._done.append(Line(start, self._end, self._size, whole))
        self._start, self._end, self._size = bytearray(), b"", 0
