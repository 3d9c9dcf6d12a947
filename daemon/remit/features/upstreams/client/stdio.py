"""A server that is a process: its messages, one to a line, and the end of all that it started.

Nobody waits for a server that does not read: what is written is queued, and when the queue is full
the server counts as gone. A line that is too long is not kept while it is read: of it remain the
beginning and the end, where the id of the request that it answers stands, so that this request can
be told.
"""

import re
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import msgspec
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from remit.features.upstreams.client.start import CannotStartError, ServerOutput, Throttle
from remit.kernel.processes.child import ChildProcess, open_child

_ERROR_BYTES_PER_SECOND = 1_000_000
_KEPT = 512
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]){1,64}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_AT_START = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
# The last brace closes the message itself: what stands right before it is no part of a result.
_AT_END = re.compile(rb",\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")
TOO_LARGE = "the answer is too large"
UNREADABLE = "the answer is not a message of the protocol"
_QUEUED = 1_024
_QUEUED_BYTES = 16 * 1024 * 1024
_FLUSH_SECONDS = 0.5


@asynccontextmanager
async def open_server(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    errors: ServerOutput,
    stop_seconds: float,
) -> AsyncGenerator[ChildProcess]:
    """A running server, which ends with the block.

    Raises:
        CannotStartError: it cannot be started.
    """
    throttle = Throttle(_ERROR_BYTES_PER_SECOND)

    async def hear(piece: bytes) -> None:
        if not piece:
            errors.rest()
            return
        errors.hear(piece)
        await throttle.spend(len(piece))

    server = open_child(
        command, env=env, cwd=cwd, on_output=hear, is_dialogue=True, stop_seconds=stop_seconds
    )
    async with AsyncExitStack() as stack:
        try:
            child = await stack.enter_async_context(server)
        except (OSError, ValueError) as error:
            raise CannotStartError(f"it cannot be started: {error}") from error
        yield child


class WireLine(msgspec.Struct, frozen=True):
    """One line; when it was too long only its beginning and its end."""

    start: bytes
    end: bytes = b""
    size: int = 0
    whole: bool = True

    def request(self) -> int | str | None:
        """The id of the request that it answers, if it can be told without reading all of it."""
        found = _AT_START.match(self.start) or _AT_END.search(self.end or self.start)
        return None if found is None else msgspec.json.decode(found[1], type=int | str)


class LineReader:
    """Takes pieces, gives lines."""

    def __init__(self, *, longest: int) -> None:
        self._longest = longest
        self._start = bytearray()
        self._end = b""
        self._size = 0
        self._done: deque[WireLine] = deque()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes; at most as many lines as these have are kept."""
        *ends, rest = piece.split(b"\n")
        for part in ends:
            self._add(part)
            self._finish()
        self._add(rest)

    def take(self) -> WireLine | None:
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
            self._done.append(WireLine(start, self._end, self._size, whole))
        self._start, self._end, self._size = bytearray(), b"", 0


@asynccontextmanager
async def stdio_messages(
    child: ChildProcess, *, noise: ServerOutput, longest: int
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


async def _write(child: ChildProcess, writer: "_Writer", reader: "_Reader") -> None:
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

    def __init__(self, child: ChildProcess, noise: ServerOutput, *, longest: int) -> None:
        self._child = child
        self._noise = noise
        self._lines = LineReader(longest=longest)
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


def _failed(line: WireLine, message: str) -> SessionMessage | Exception:
    """What cannot be read, told to the request that it answers if that can be seen."""
    request = line.request()
    if request is None:
        return ValueError(message)
    error = ErrorData(code=PARSE_ERROR, message=message, data={"bytes": line.size})
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))
