"""Lines on descriptors: messages to and from a host, without a thread where none is needed.

A pipe or a socket tells when it can be read, and takes a short message at once when it has room. A
terminal, a file or a full pipe is waited for in a thread.
"""

import os
import select
import stat

import anyio
import anyio.to_thread

_LONGEST = 16 << 20
"""Bytes of one message; a longer one is no message of a host in its right mind."""
_PIECE = 65_536
_AT_ONCE = select.PIPE_BUF
"""Bytes that a pipe with room takes whole."""


class Lines:
    """The lines that a host writes; waiting for one can be given up."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._tells = _tells(descriptor)
        self._held = bytearray()
        self._looked = 0

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> str:
        while True:
            end = self._held.find(b"\n", self._looked) + 1
            if not end and len(self._held) < _LONGEST:
                self._looked = len(self._held)
                piece = await self._piece()
                self._held += piece
                if piece:
                    continue
            if not self._held:
                raise StopAsyncIteration
            line = self._held[: end or _LONGEST]
            del self._held[: len(line)]
            self._looked = 0
            return line.decode("utf-8", errors="replace")

    async def _piece(self) -> bytes:
        """More bytes; none at the end."""
        if not self._tells:
            read = anyio.to_thread.run_sync
            return await read(os.read, self._descriptor, _PIECE, abandon_on_cancel=True)
        while True:
            await anyio.wait_readable(self._descriptor)
            try:
                return os.read(self._descriptor, _PIECE)
            except BlockingIOError:  # whoever shares it was faster
                continue


class Pipe:
    """Where messages go; a host that does not read makes us wait, not grow."""

    def __init__(self, descriptor: int) -> None:
        self.gone = anyio.Event()
        """Set when the host reads no more."""
        self._descriptor = descriptor
        self._room = select.poll() if _tells(descriptor) else None
        if self._room is not None:
            self._room.register(descriptor, select.POLLOUT)

    async def write(self, text: str) -> None:
        """Write a message."""
        data = text.encode()
        try:
            if len(data) <= _AT_ONCE and self._room is not None and self._room.poll(0):
                data = data[os.write(self._descriptor, data) :]
            if data:
                await anyio.to_thread.run_sync(self._write, data, abandon_on_cancel=True)
        except (BrokenPipeError, ConnectionResetError):
            self.gone.set()

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # the host made it so
                select.select([], [self._descriptor], [])


def _tells(descriptor: int) -> bool:
    """Whether it tells when it can be read or written; epoll takes no files."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
