"""The outermost layer: what holds for every request, whatever its route.

Each has an id. A head that has two meanings, is too large or is meant for another host is refused,
and its connection closed. What a refused client goes on sending is not read for ever. HEAD is GET
without its body.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from litestar.types import ASGIApp, Message, Receive, Send

from remit.faces.http.hosts import Hosts
from remit.faces.http.limits import Limits, Stats
from remit.faces.http.problems import LARGE_HEAD, MEDIA_TYPE, ProblemError, problem, problem_body
from remit_client.wire import Failure

log = structlog.get_logger()

REQUEST_ID = "remit_request_id"
"""Where the id of a request stands in its scope."""
ABORT = "remit_abort"
"""Where the way to cut its connection stands."""
IS_HEAD = "remit_is_head"
AT_END = "remit_at_end"
"""Where a route puts what is to be done once its answer is sent, or its client is gone."""
_OUR_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]
_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_UNREAD = 65_536
"""So much of a body that nobody wants is read all the same: closing early loses the answer."""


class Gate:
    """The ASGI application that stands before all others."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Hosts,
        limits: Limits,
        stats: Stats,
        mounts: Mapping[str, Any] | None = None,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._limits = limits
        self._mounts = dict(mounts or {})
        self._stats = stats
        # A number behind a word of this start: a system call for each request would be felt.
        self._boot = secrets.token_hex(4)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        self._stats.requests += 1
        headers = dict(scope["headers"])
        request_id = self._request_id(headers.get(b"x-request-id"))
        inner: dict[str, Any] = {**scope, REQUEST_ID: request_id, IS_HEAD: False, AT_END: []}
        if scope["method"] == "HEAD":
            # The server itself leaves the body out: it knows what was asked for.
            inner |= {"method": "GET", IS_HEAD: True}
        reader = _Reader(receive, unread=_unread(headers))
        writer = _Writer(send, reader, request_id)
        abort: Callable[[], None] = scope.get(ABORT, _nothing)
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                self._stats.refused += 1
                await _refuse(writer, refusal, request_id)
                return
            app = self._mounts.get(scope["path"].rstrip("/"), self._app)
            await app(inner, reader, writer)
        except Exception:
            log.exception("http_answer_failed", request_id=request_id)
            self._stats.cut += 1
            abort()
        finally:
            for close in inner[AT_END]:
                close()

    def _refusal(self, scope: Any) -> ProblemError | None:
        """Why nothing of a request is read, before anybody asks what it wants."""
        names = [name for name, _ in scope["headers"]]
        if _head_bytes(scope) > self._limits.header_bytes:
            failure = Failure(
                "too_large", f"a head has at most {self._limits.header_bytes:,} bytes"
            )
            return ProblemError(failure, status=LARGE_HEAD)
        if b"transfer-encoding" in names and (
            # Whoever reads the one and whoever reads the other see two requests (RFC 9112, 6.1).
            b"content-length" in names or scope["http_version"] == "1.0"
        ):
            message = "a body has a Content-Length or a Transfer-Encoding, and not both"
            return problem("bad_frame", message)
        if not self._hosts.allow([value for name, value in scope["headers"] if name == b"host"]):
            message = "this server is not asked under that name"
            return problem("wrong_host", message, "name it in the setting http_hosts")
        return None

    def _request_id(self, shown: bytes | None) -> str:
        """The client's own, if it has one that can be shown."""
        if shown is not None and _ID.fullmatch(shown):
            return shown.decode()
        return f"{self._boot}-{self._stats.requests:x}"


class _Reader:
    """Knows how much of the body may still come."""

    def __init__(self, receive: Receive, *, unread: int) -> None:
        self._receive = receive
        self.unread = unread

    async def __call__(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.unread = 0
        return message


class _Writer:
    """Adds what every answer has."""

    def __init__(self, send: Send, reader: _Reader, request_id: str) -> None:
        self._send = send
        self._reader = reader
        self._request_id = request_id

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            ours = [*_OUR_HEADERS, (b"x-request-id", self._request_id.encode())]
            if self._reader.unread > _UNREAD:
                ours.append((b"connection", b"close"))
            added = [one for one in ours if one[0] not in present]
            message["headers"] = [*message["headers"], *added]
        await self._send(message)


def _head_bytes(scope: Any) -> int:
    """The bytes of a head as it came: the line of the request, and a line for each header."""
    target = len(scope["method"]) + len(scope["raw_path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


async def _refuse(send: Send, error: ProblemError, request_id: str) -> None:
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    body = problem_body(error, request_id)
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _unread(headers: dict[bytes, bytes]) -> int:
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit() or len(length) > 19:  # noqa: PLR2004
        return _UNREAD + 1
    return int(length)


def _nothing() -> None:
    pass
