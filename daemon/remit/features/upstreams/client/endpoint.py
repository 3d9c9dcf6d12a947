"""How a server is reached: as a process, or at a URL.

A process ends with all that it started. Over HTTP, our headers go to that host alone, and no answer
is read without end. What goes wrong on the way becomes a status: the library would give up
everything that is under way because of one request that failed. Redirects to other hosts are not
followed, which the library sees to.
"""

import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from mcp.client.streamable_http import streamable_http_client

from remit.features.upstreams.client.state import (
    CannotStartError,
    ServerOutput,
    StartParameters,
    Throttle,
    command_line,
)
from remit.features.upstreams.client.transport import stdio_messages
from remit.kernel.processes.child import ChildProcess, open_child

_LAST_WORDS_SECONDS = 0.5
_SLACK_SECONDS = 10.0
_ERROR_BYTES_PER_SECOND = 1_000_000
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


class ServerEndpoint:
    """A server that is reached: its messages, and why it is gone when it is."""

    def __init__(
        self,
        start: StartParameters,
        messages: Any,
        *,
        child: ChildProcess | None = None,
        http: BoundedTransport | None = None,
    ) -> None:
        self._start = start
        self._child = child
        self._http = http
        self.messages = messages

    @property
    def trouble(self) -> str:
        """What went wrong last on the way to a URL."""
        return "" if self._http is None else self._http.trouble

    async def end_reason(self) -> str:
        """What is known about its end; empty when nothing is."""
        last = self._start.errors.last
        if self._child is None:
            return self.trouble
        code = await self._child.exit_code(_LAST_WORDS_SECONDS)
        if code is None:
            return last
        last = self._start.errors.last
        ended = f"it was ended by signal {-code}" if code < 0 else f"it exited with code {code}"
        return f"{ended}: {last}" if last else ended


@asynccontextmanager
async def open_endpoint(
    start: StartParameters, on_broken: Callable[[str], None]
) -> AsyncGenerator[ServerEndpoint]:
    """A server for as long as the block runs.

    Args:
        start: how.
        on_broken: told when a server behind a URL cannot be asked any more, and why.

    Raises:
        CannotStartError: it cannot be started.
    """
    limits, upstream, environment = start.limits, start.upstream, start.environment
    if upstream.url:
        patience = max(upstream.timeout, upstream.start_timeout) + _SLACK_SECONDS
        http = BoundedTransport(
            longest=limits.message_bytes, patience=patience, on_broken=on_broken
        )
        async with http_client(http, environment.headers) as client:
            messages = streamable_http_client(
                upstream.url, http_client=client, max_sse_event_size=limits.message_bytes
            )
            yield ServerEndpoint(start, messages, http=http)
        return
    path = environment.env.get("PATH", os.defpath)
    command = await anyio.to_thread.run_sync(command_line, upstream, path)
    async with open_server(
        [*start.guard, *command],
        env=environment.env,
        cwd=upstream.cwd or None,
        errors=start.errors,
        stop_seconds=limits.stop_seconds,
    ) as child:
        lines = stdio_messages(child, noise=start.noise, longest=limits.message_bytes)
        yield ServerEndpoint(start, lines, child=child)


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
