"""The ASGI application: what holds for every request, and the routes.

`RequestMiddleware` is the outermost layer. It gives each request an id; a head that has two
meanings, is too large or is meant for another host is refused, and its connection closed. What a
refused client goes on sending is not read for ever. HEAD is GET without its body. Behind it `Cors`
answers for the web pages that the operator named, and `Routes` finds the operation and makes a
problem of each failure.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remit.faces.http.endpoints import IS_HEAD
from remit.faces.http.gateway import AT_END, Exchange, Gateway
from remit.faces.http.openapi import Operation, RequestType, document, page
from remit.faces.http.operations import OPERATIONS
from remit.faces.http.responses import (
    JSON,
    LARGE_HEAD,
    PROBLEM_JSON,
    REQUEST_ID,
    ProblemError,
    problem,
    problem_body,
    respond_problem,
)
from remit.faces.http.server import ABORT, HostNames, HttpLimits, HttpStats
from remit_client.wire import Failure

log = structlog.get_logger()

_OUR_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]
_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_UNREAD = 65_536
"""So much of a body that nobody wants is read all the same: closing early loses the answer."""
_LENGTH_DIGITS = 19
_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_ALL = "*"
_CORS_METHODS = "DELETE, GET, HEAD, OPTIONS, PATCH, POST"
_CORS_HEADERS = "authorization, content-type, if-none-match, remit-session"
_CORS_SAFE = "Accept, Accept-Language, Content-Language, Content-Type"
"""Headers that a page may send without asking."""
_CORS_EXPOSED = "ETag, Remit-Decision, Remit-Revision, Remit-Warning, X-Request-Id"


def make_application(
    gateway: Gateway,
    *,
    request_type: RequestType,
    hosts: HostNames,
    origins: Sequence[str] = (),
    mounts: Mapping[str, ASGIApp] | None = None,
) -> "RequestMiddleware":
    """Put the layers together.

    Args:
        gateway: leads to the dispatcher.
        request_type: looks up request types for the OpenAPI document.
        hosts: the names by which the server may be asked.
        origins: the web pages that may read answers.
        mounts: further applications by the path they are served under; these answer for themselves.
    """
    app: ASGIApp = Routes(gateway, [*OPERATIONS, *_pages(request_type)])
    if origins:
        app = Cors(app, origins)
    return RequestMiddleware(
        app, hosts=hosts, limits=gateway.limits, stats=gateway.stats, mounts=mounts
    )


class RequestMiddleware:
    """The outermost layer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: HostNames,
        limits: HttpLimits,
        stats: HttpStats,
        mounts: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._limits = limits
        self._mounts = dict(mounts or {})
        self._stats = stats
        # A number behind a word of this start: a system call for each request would be felt.
        self._boot = secrets.token_hex(4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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

    def _refusal(self, scope: Scope) -> ProblemError | None:
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


class Cors:
    """Lets the web pages of some origins read answers; credentials are never allowed.

    An origin may hold `*` for any text. Every OPTIONS of a page is taken for a preflight.
    """

    def __init__(self, app: ASGIApp, origins: Iterable[str]) -> None:
        self._app = app
        origins = list(origins)
        self._is_open = _ALL in origins
        patterns = [".*".join(map(re.escape, one.split(_ALL))) for one in origins]
        self._allowed = re.compile("|".join(patterns))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if not origin:
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS":
            await self._preflight(origin, headers)(scope, receive, send)
        else:

            async def send_allowed(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._allow(origin, MutableHeaders(scope=message))
                await send(message)

            await self._app(scope, receive, send_allowed)

    def _is_allowed(self, origin: str) -> bool:
        return self._is_open or self._allowed.fullmatch(origin) is not None

    def _allow(self, origin: str, headers: MutableHeaders) -> None:
        """Add what a page needs to read the answer."""
        headers["Access-Control-Expose-Headers"] = _CORS_EXPOSED
        headers["Access-Control-Allow-Headers"] = _CORS_HEADERS
        headers["Access-Control-Allow-Methods"] = _CORS_METHODS
        if self._is_open:
            headers["Access-Control-Allow-Origin"] = _ALL
        elif self._is_allowed(origin):
            headers["Access-Control-Allow-Origin"] = origin
            headers["Vary"] = "Origin"

    def _preflight(self, origin: str, headers: Headers) -> Response:
        known = f"{_CORS_HEADERS}, {_CORS_SAFE}".lower().split(", ")
        asked = headers.get("access-control-request-headers", "").lower().split(",")
        method = headers.get("access-control-request-method")
        failures = []
        if method and method not in _CORS_METHODS.split(", "):
            failures.append("method")
        if not self._is_allowed(origin):
            failures.append("Origin")
        if not {one.strip() for one in asked} <= {*known, ""}:
            failures.append("headers")
        if failures:
            text = f"Disallowed CORS {', '.join(failures)}"
            return PlainTextResponse(text, status_code=HTTPStatus.BAD_REQUEST)
        answer = {
            "Access-Control-Max-Age": "600",
            "Access-Control-Allow-Headers": f"{_CORS_SAFE}, {_CORS_HEADERS}",
            "Access-Control-Allow-Methods": _CORS_METHODS,
            "Access-Control-Allow-Origin": _ALL if self._is_open else origin,
        }
        if not self._is_open:
            answer["Vary"] = "Origin"
        return Response(status_code=HTTPStatus.NO_CONTENT, headers=answer)


class Routes:
    """Finds the operation of a request by its path and method.

    A path means the same with a slash at its end, and with several in a row. Each parameter is one
    segment as it is: a router of patterns would let a line break at the end of a path pass.
    """

    def __init__(self, gateway: Gateway, operations: Iterable[Operation]) -> None:
        self._gateway = gateway
        self._by_path: dict[tuple[str, ...], dict[str, Operation]] = {}
        for one in operations:
            self._by_path.setdefault(tuple(_segments(one.path)), {})[one.method] = one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive, send)
        try:
            response = await self._respond(request)
        except ProblemError as error:
            if not error.decision:  # no event was called
                self._gateway.stats.refused += 1
            response = respond_problem(request, error)
        except Exception as error:
            response = _failed(request, error)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        operations, request.scope["path_params"] = self._find(request.scope["path"])
        operation = operations.get(request.scope["method"])
        if operation is not None:
            return await operation.serve(Exchange(self._gateway, request, operation))
        methods = sorted({*operations, "OPTIONS"} | ({"HEAD"} if "GET" in operations else set()))
        if request.scope["method"] == "OPTIONS":
            headers = {"Allow": ", ".join(methods)}
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)
        raise problem("method_not_allowed", "that method is not served here", allow=methods)

    def _find(self, path: str) -> tuple[dict[str, Operation], dict[str, str]]:
        """The operations of a path by method, and the parameters in it."""
        segments = _segments(path)
        for known, operations in self._by_path.items():
            if len(known) == len(segments):
                pairs = list(zip(known, segments, strict=True))
                if all(name == given or name.startswith("{") for name, given in pairs):
                    params = {name[1:-1]: given for name, given in pairs if name.startswith("{")}
                    return operations, params
        raise problem("not_found", "there is nothing under this path", "GET / lists the paths")


def _segments(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _pages(request_type: RequestType) -> list[Operation]:
    """The document and the page of the operations; they do not describe themselves."""
    texts: dict[str, bytes] = {}

    async def openapi(_exchange: Exchange) -> Response:
        if "openapi" not in texts:
            texts["openapi"] = msgspec.json.encode(document(OPERATIONS, request_type))
        headers = {"Cache-Control": "no-cache"}
        return Response(texts["openapi"], media_type=JSON, headers=headers)

    async def index(_exchange: Exchange) -> Response:
        headers = {"Content-Security-Policy": _PAGE_POLICY, "Referrer-Policy": "no-referrer"}
        return Response(page(OPERATIONS), media_type="text/html", headers=headers)

    summary = "Describe this API."
    return [
        Operation(
            method="GET", path="/openapi.json", name="openapi", summary=summary, serve=openapi
        ),
        Operation(method="GET", path="/", name="page", summary=summary, serve=index),
    ]


def _failed(request: Request, error: Exception) -> Response:
    """A bug of ours; only the log says what it was."""
    request_id = str(request.scope.get(REQUEST_ID, ""))
    log.error("http_route_failed", request_id=request_id, exc_info=error)
    message = f"something went wrong inside (request id {request_id})"
    failure = Failure("internal", message, f"search the daemon's log for {request_id}")
    return respond_problem(request, ProblemError(failure))


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
    headers = [(b"content-type", PROBLEM_JSON.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    body = problem_body(error, request_id)
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _unread(headers: dict[bytes, bytes]) -> int:
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit() or len(length) > _LENGTH_DIGITS:
        return _UNREAD + 1
    return int(length)


def _nothing() -> None:
    pass
