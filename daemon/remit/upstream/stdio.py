"""The messages of a server that is a process, one to a line.

Nobody waits for a server that does not read: what is written is queued, and when the queue is full
the server counts as gone.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from remit.upstream.chatter import Chatter
from remit.upstream.child import Child
from remit.upstream.lines import Line, Lines

TOO_LARGE = "the answer is too large"
UNREADABLE = "the answer is not a message of the protocol"
_QUEUED = 1_024
_QUEUED_BYTES = 16 * 1024 * 1024
_FLUSH_SECONDS = 0.5


@asynccontextmanager
async def stdio_messages(
    child: Child, *, noise: Chatter, longest: int
) -> AsyncGenerator[tuple["_Reader", "_Writer"]]:
    """The two streams that a sieve goes around."""
    reader = _Reader(child, noise, longest=longest)
    writer = _Writer()
    async with anyio.create_task_group() as writing:
        writing.start_soon(_write, child, writer, reader)
        try:
            yield reader, writer
        finally:
            await writer.aclose()
            # A last word, as that a call is cancelled, should still be heard.
            writing.cancel_scope.deadline = anyio.current_time() + _FLUSH_SECONDS


async def _write(child: Child, writer: "_Writer", reader: "_Reader") -> None:
    async with writer.queued:
        async for line in writer.queued:
            try:
                await child.send(line)
            except OSError:
                await reader.aclose()
                return
            writer.size -= len(line)


class _Writer:
    """Messages to the server."""

    def __init__(self) -> None:
        self._queue, self.queued = anyio.create_memory_object_stream[bytes](_QUEUED)
        self.size = 0

    async def send(self, item: SessionMessage, /) -> None:
        """Queue a message.

        Raises:
            BrokenResourceError: the server does not read.
        """
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        if self.size > _QUEUED_BYTES:
            raise anyio.BrokenResourceError
        try:
            self._queue.send_nowait(line)
        except anyio.WouldBlock:
            raise anyio.BrokenResourceError from None
        self.size += len(line)

    async def aclose(self) -> None:
        """Nothing more will be written; what is queued still is."""
        self._queue.close()


class _Reader:
    """Messages of the server; what is none is noise."""

    def __init__(self, child: Child, noise: Chatter, *, longest: int) -> None:
        self._child = child
        self._noise = noise
        self._lines = Lines(longest=longest)
        self._open = True
        self._waiting = anyio.CancelScope()
        self.last_size = 0
        """Bytes of what was read last."""

    async def receive(self) -> SessionMessage | Exception:
        """The next message.

        Raises:
            EndOfStream: there will be no more.
        """
        while (line := self._lines.take()) is None:
            self._lines.feed(await self._piece())
        self.last_size = len(line.start)
        if not line.whole:
            return _failed(line, TOO_LARGE)
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line.start, by_name=False))
        except ValueError:
            self._noise.say(line.start)
            return _failed(line, UNREADABLE)

    async def _piece(self) -> bytes:
        """More bytes, until the server has ended or we have."""
        piece = b""
        if self._open:
            with anyio.CancelScope() as self._waiting:
                piece = await self._child.receive()
        if not piece:
            raise anyio.EndOfStream
        return piece

    async def aclose(self) -> None:
        """Nothing more will be read."""
        self._open = False
        self._waiting.cancel()


def _failed(line: Line, message: str) -> SessionMessage | Exception:
    """What cannot be read, told to the request that it answers if that can be seen."""
    request = line.request()
    if request is None:
        return ValueError(message)
    error = ErrorData(code=PARSE_ERROR, message=message, data={"bytes": line.size})
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))
