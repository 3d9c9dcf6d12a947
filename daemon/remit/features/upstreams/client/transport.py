"""What passes between a server and the protocol library: lines of a process, filtered both ways.

Nobody waits for a server that does not read: what is written is queued, and when the queue is full
the server counts as gone. A line that is too long is not kept while it is read: of it remain the
beginning and the end, where the id of the request that it answers stands, so that this request can
be told.

The filter: the library gives up on a whole list because of one odd tool, starts a task for each
notification, and tells every listener of changes one by one. Here a list reaches it with only the
tools' names and inputs, the rest goes past it; changes of the list are told once to whom they
concern; and all that nobody asked for is counted, and slowed down when it is too much.
"""

import re
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
import msgspec
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from remit.features.upstreams.client.state import ServerOutput, Throttle
from remit.kernel.processes.child import ChildProcess

RAW_TOOLS = "remit/tools"
"""The key in `_meta` under which the tools of a page stand as the server wrote them."""
_UNASKED_PER_SECOND = 2_000
_SMALL = 1_000
"""Bytes of a message that counts as one; reading a larger one takes longer."""
_MOST_PENDING = 10_000
_CHANGED = "notifications/tools/list_changed"
_PASSED = frozenset(
    {
        "notifications/progress",
        "notifications/cancelled",
        "notifications/subscriptions/acknowledged",
    }
)
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


class MessageFilter:
    """A transport around a transport."""

    def __init__(
        self,
        inner: Transport,
        *,
        on_changed: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._on_changed = on_changed
        self._on_end = on_end
        self._asked: dict[int | str, str] = {}
        self._throttle = Throttle(_UNASKED_PER_SECOND)

    async def __aenter__(self) -> tuple["_Reader", "_Writer"]:
        read, write = await self._inner.__aenter__()
        return _Reader(self, read), _Writer(self, write)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)

    def ended(self) -> None:
        """Nothing more comes from the server."""
        self._on_end()

    def going_out(self, item: SessionMessage) -> None:
        """Remember what is asked, so that answers can be told from noise."""
        message = item.message
        if isinstance(message, JSONRPCRequest):
            if len(self._asked) >= _MOST_PENDING:  # what was given up on and never answered
                del self._asked[next(iter(self._asked))]
            self._asked[message.id] = message.method

    async def coming_in(
        self, item: SessionMessage | Exception, size: int = 0
    ) -> SessionMessage | None:
        """What is passed on of something of so many bytes that the server wrote; None: nothing."""
        if not isinstance(item, Exception):
            message = item.message
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                method = self._answered(message.id)
                if method is not None:  # there are no more of them than we have asked for
                    return _cleaned(item) if method == "tools/list" else item
            elif await self._is_passed(message, size):
                return item
        await self._unasked(size)
        return None

    def _answered(self, request: int | str | None) -> str | None:
        if request is None:
            return None
        if request not in self._asked and isinstance(request, str) and request.isdecimal():
            request = int(request)
        return self._asked.pop(request, None)

    async def _is_passed(self, message: JSONRPCRequest | JSONRPCNotification, size: int) -> bool:
        if isinstance(message, JSONRPCNotification):
            if message.method == _CHANGED:
                self._on_changed()
            if message.method not in _PASSED:
                return False
        await self._unasked(size)
        return True

    async def _unasked(self, size: int) -> None:
        """Others have their turn, however fast a server writes; too fast a one waits."""
        await anyio.lowlevel.checkpoint()
        await self._throttle.spend(1 + size // _SMALL)


def _cleaned(item: SessionMessage) -> SessionMessage:
    """A page of a list with what the library has to know of it."""
    message = item.message
    raw = message.result.get("tools") if isinstance(message, JSONRPCResponse) else None
    if not isinstance(message, JSONRPCResponse) or not isinstance(raw, list):
        return item
    meta = message.result.get("_meta")
    result: dict[str, Any] = {
        **message.result,
        "tools": [_known(tool) for tool in raw if _is_known(tool)],
        "_meta": {**(meta if isinstance(meta, dict) else {}), RAW_TOOLS: raw},
    }
    return SessionMessage(message.model_copy(update={"result": result}), item.metadata)


def _is_known(tool: Any) -> bool:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return False
    schema = tool.get("inputSchema")
    return isinstance(schema, dict) and schema.get("type") == "object"


def _known(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "inputSchema": tool["inputSchema"]}


class _Reader:
    """What the library reads."""

    def __init__(self, filter_: MessageFilter, inner: Any) -> None:
        self._filter = filter_
        self._inner = inner

    @property
    def last_context(self) -> Any:
        """The context of whoever wrote it, which some transports keep."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._filter.ended()
                raise
            size = getattr(self._inner, "last_size", 0)  # where the transport knows it
            passed = await self._filter.coming_in(item, size)
            if passed is not None:
                return passed

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Writer:
    """What the library writes to."""

    def __init__(self, filter_: MessageFilter, inner: Any) -> None:
        self._filter = filter_
        self._inner = inner

    async def send(self, item: SessionMessage, /) -> None:
        self._filter.going_out(item)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


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


class LineSplitter:
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
) -> AsyncGenerator[tuple["_ProcessReader", "_ProcessWriter"]]:
    """The two streams around which a message filter stands."""
    reader = _ProcessReader(child, noise, longest=longest)
    writer = _ProcessWriter()
    async with anyio.create_task_group() as writing:
        writing.start_soon(_write, child, writer, reader)
        try:
            yield reader, writer
        finally:
            await writer.aclose()
            # A last word, as that a call is cancelled, should still be heard.
            writing.cancel_scope.deadline = anyio.current_time() + _FLUSH_SECONDS


async def _write(child: ChildProcess, writer: "_ProcessWriter", reader: "_ProcessReader") -> None:
    async with writer.queued:
        async for line in writer.queued:
            try:
                await child.send(line)
            except OSError:
                await reader.aclose()
                return
            writer.size -= len(line)


class _ProcessWriter:
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


class _ProcessReader:
    """Messages of the server; what is none is noise."""

    def __init__(self, child: ChildProcess, noise: ServerOutput, *, longest: int) -> None:
        self._child = child
        self._noise = noise
        self._lines = LineSplitter(longest=longest)
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
