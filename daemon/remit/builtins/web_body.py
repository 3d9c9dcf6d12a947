"""The body of an answer, decompressed as it comes and never beyond a limit."""

import zlib
from typing import Any

_GZIP = 31
_ZLIB = 15
_RAW = -15
CHUNKS = 50_000
"""Of a body: five megabytes in chunks of one byte would keep a core busy for half a minute."""


class Body:
    """Takes chunks in until there is enough.

    Compressed data are counted too: a stream of empty blocks never becomes any text.
    """

    def __init__(self, encoding: str, *, limit: int) -> None:
        self.data = bytearray()
        self.is_full = False
        self.is_broken = False
        self._limit = limit
        self._taken = 0
        self._chunks = 0
        self._is_deflate = encoding == "deflate"
        self._stream: Any = None
        if encoding in {"gzip", "x-gzip", "deflate"}:
            self._stream = zlib.decompressobj(_ZLIB if self._is_deflate else _GZIP)

    @property
    def wants_more(self) -> bool:
        """Tell whether a further chunk would be of use."""
        return not (self.is_full or self.is_broken or (self._stream and self._stream.eof))

    def feed(self, chunk: bytes) -> None:
        """Take in a chunk."""
        room = self._limit - self._taken
        self._taken += len(chunk)
        self._chunks += 1
        if len(chunk) > room or self._chunks > CHUNKS:
            self.is_full, chunk = True, chunk[:room]
        if self._stream is None:
            self.data += chunk
            return
        try:
            self._inflate(chunk)
        except zlib.error:
            self.is_broken = True

    def end(self) -> None:
        """No more chunks come: a stream that was not finished is a broken one."""
        if self._stream is not None and not self._stream.eof and not self.is_full:
            self.is_broken = True

    def _inflate(self, chunk: bytes) -> None:
        room = self._limit - len(self.data)
        try:
            piece = self._stream.decompress(chunk, room + 1)
        except zlib.error:
            if not self._is_deflate or self.data:
                raise
            # Half of those who say deflate leave out its header.
            self._stream = zlib.decompressobj(_RAW)
            piece = self._stream.decompress(chunk, room + 1)
        self.data += piece[:room]
        self.is_full = self.is_full or len(piece) > room
