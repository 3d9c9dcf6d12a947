"""What passes between a server and the protocol library: over HTTP, and filtered for both ways.

HTTP: our headers go to that host alone, and no answer is read without end. What goes wrong on the
way becomes a status: the library would give up everything that is under way because of one request
that failed. Redirects to other hosts are not followed, which the library sees to.

The filter: the library gives up on a whole list because of one odd tool, starts a task for each
notification, and tells every listener of changes one by one. Here a list reaches it with only the
tools' names and inputs, the rest goes past it; changes of the list are told once to whom they
concern; and all that nobody asked for is counted, and slowed down when it is too much.
"""

import math
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
import httpx2
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from remit.features.upstreams.client.start import Throttle

_UNREACHABLE = 503
_UNREADABLE = 502
_UNAUTHORISED = (401, 403)
_FAILED = 400
_CONNECT_SECONDS = 10.0
_GOODBYE_SECONDS = 2.0
_MOST_CONNECTIONS = 256
_NEWS_PER_SECOND = 1_000_000
"""Bytes of a stream of news; nobody waits for them."""
_ANSWERS_PER_SECOND = 16_000_000
_STREAMS_PER_SECOND = 5
"""A stream of news that ends is opened again, at once if the server says so."""
SIZE = "more bytes than are taken"
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


class BodyTooLarge(httpx2.StreamError):
    """A body is larger than is taken; the library tells it to the request."""

    def __init__(self) -> None:
        super().__init__(SIZE)


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Every request to the server."""

    def __init__(self, *, longest: int, patience: float, on_broken: Callable[[str], None]) -> None:
        """Nothing is opened yet.

        Args:
            longest: bytes that are read of one answer.
            patience: seconds without a byte after which an answer will not come any more, and after
                which nobody waits for one, however many bytes come.
            on_broken: told that a new connection is needed, and why.
        """
        limits = httpx2.Limits(max_connections=_MOST_CONNECTIONS)
        self._inner = httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)
        self._longest = longest
        self._patience = patience
        self._on_broken = on_broken
        self._opening = Throttle(_STREAMS_PER_SECOND)
        self.trouble = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it; what fails on the way is answered with a status."""
        if request.method == "GET":
            await self._opening.spend()
        listens = _is_for_news(request)
        request.extensions["timeout"] = {
            "connect": _CONNECT_SECONDS,
            "pool": _CONNECT_SECONDS,
            "write": self._patience,
            "read": None if listens else self._reading(request),
        }
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            self.trouble = f"{type(error).__name__}: {error}".rstrip(": ")
            if not isinstance(error, httpx2.TimeoutException):
                self._on_broken(self.trouble)
            return httpx2.Response(_UNREACHABLE, request=request)
        return await self._checked(request, response)

    def _reading(self, request: httpx2.Request) -> float:
        return _GOODBYE_SECONDS if request.method == "DELETE" else self._patience

    async def _checked(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        status = response.status_code
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # Nobody asked for it, and how large it becomes is not known beforehand.
            await response.aclose()
            self.trouble = "it answers in a compressed form that it was not asked for"
            return httpx2.Response(_UNREADABLE, request=request)
        if status >= _FAILED and request.method == "POST":
            self.trouble = f"HTTP {status} {response.reason_phrase}".rstrip()
            if status in _UNAUTHORISED:
                self._on_broken(self.trouble)
        endless = response.headers.get("content-type", "").startswith("text/event-stream")
        return httpx2.Response(
            status,
            headers=response.headers,
            stream=self._paced(request, response) if endless else _Bounded(response, self._longest),
            extensions=response.extensions,
            request=request,
        )

    def _paced(self, request: httpx2.Request, response: httpx2.Response) -> "_Paced":
        if _is_for_news(request):
            return _Paced(response, Throttle(_NEWS_PER_SECOND), math.inf)
        return _Paced(response, Throttle(_ANSWERS_PER_SECOND), self._patience)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()


def _is_for_news(request: httpx2.Request) -> bool:
    return request.method == "GET" or "listen" in request.headers.get("mcp-method", "")


class _Paced(httpx2.AsyncByteStream):
    """A stream of messages: read no faster than this, and no longer."""

    def __init__(self, response: httpx2.Response, pace: Throttle, seconds: float) -> None:
        self._response = response
        self._throttle = pace
        self._until = anyio.current_time() + seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_raw():
            if anyio.current_time() > self._until:
                return
            await self._throttle.spend(len(piece))
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """The body of an answer, up to a limit."""

    def __init__(self, response: httpx2.Response, longest: int) -> None:
        self._response = response
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._response.aiter_raw():
                size += len(piece)
                if size > self._longest:
                    raise BodyTooLarge
                yield piece
        except httpx2.TransportError as error:
            raise httpx2.StreamError(f"it broke off: {type(error).__name__}") from error

    async def aclose(self) -> None:
        await self._response.aclose()


def http_client(guard: BoundedTransport, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """The client for one server."""
    return httpx2.AsyncClient(
        transport=guard,
        headers={**headers, "Accept-Encoding": "identity"},
        follow_redirects=False,
        trust_env=False,
    )


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

    def __init__(self, sieve: MessageFilter, inner: Any) -> None:
        self._filter = sieve
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

    def __init__(self, sieve: MessageFilter, inner: Any) -> None:
        self._filter = sieve
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
