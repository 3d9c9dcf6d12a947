"""The Litestar application: the table of routes, and every failure as a problem."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import Litestar, Request, Response
from litestar.config.cors import CORSConfig
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler, get, route

from remit.faces.http import agents, events, probes
from remit.faces.http.answers import JSON, respond_problem
from remit.faces.http.body import AnyRequest
from remit.faces.http.document import document, page
from remit.faces.http.gate import REQUEST_ID
from remit.faces.http.limits import Stats
from remit.faces.http.operations import Operation
from remit.faces.http.problems import ProblemError, problem
from remit_client.wire import Failure

log = structlog.get_logger()

OPERATIONS: tuple[Operation, ...] = (
    *events.OPERATIONS,
    *agents.OPERATIONS,
    *probes.OPERATIONS,
)
_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def make_application(state: dict[str, Any], *, origins: Iterable[str] = ()) -> Litestar:
    """Put the routes together."""
    allowed = list(origins)
    by_path: dict[str, list[Operation]] = {}
    for one in OPERATIONS:
        by_path.setdefault(one.path, []).append(one)
    return Litestar(
        route_handlers=[*(_handler(*one) for one in by_path.items()), *_pages()],
        state=State(state),
        openapi_config=None,
        cors_config=_cors(allowed) if allowed else None,
        exception_handlers={
            ProblemError: _problem,
            HTTPException: _not_served,
            Exception: _failed,
        },
        logging_config=None,
    )


def _handler(path: str, operations: list[Operation]) -> HTTPRouteHandler:
    """All methods of one path; Litestar's own OPTIONS would know one of them only."""
    serve_by_method = {one.method: one.serve for one in operations}
    for name in operations[0].parameters:
        path = path.replace(f"{{{name}}}", f"{{{name}:str}}")

    async def handle(request: Request[Any, Any, State]) -> Response[Any]:
        serve = serve_by_method.get(request.method)
        return _options(request) if serve is None else await serve(request)

    methods: Any = [*serve_by_method, "OPTIONS"]
    return route(path, http_method=methods, status_code=HTTPStatus.OK)(handle)


def _options(request: AnyRequest) -> Response[Any]:
    headers = {"Allow": ", ".join(_methods(request.scope["path"]))}
    return Response(b"", status_code=HTTPStatus.NO_CONTENT, headers=headers)


def _pages() -> list[HTTPRouteHandler]:
    text, shown = msgspec.json.encode(document(OPERATIONS)), page(OPERATIONS)

    @get("/openapi.json", name="openapi")
    async def openapi() -> Response[bytes]:
        return Response(text, media_type=JSON, headers={"Cache-Control": "no-cache"})

    @get("/", name="page")
    async def index() -> Response[bytes]:
        headers = {"Content-Security-Policy": _PAGE_POLICY, "Referrer-Policy": "no-referrer"}
        return Response(shown, media_type="text/html", headers=headers)

    return [openapi, index]


def _cors(origins: list[str]) -> CORSConfig:
    return CORSConfig(
        allow_origins=origins,
        allow_methods=["GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"],
        allow_headers=["Authorization", "Content-Type", "If-None-Match", "Remit-Session"],
        expose_headers=[
            *("ETag", "Remit-Decision", "Remit-Revision", "Remit-Warning", "X-Request-Id")
        ],
        allow_credentials=False,
    )


def _problem(request: AnyRequest, error: ProblemError) -> Response[bytes]:
    if not error.decision:  # no event was called
        stats: Stats = request.app.state["doorway"].stats
        stats.refused += 1
    return respond_problem(request, error)


def _not_served(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """What Litestar itself refuses: there is no such path, or no such method of it."""
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        message, allowed = "that method is not served here", _methods(request.scope["path"])
        return respond_problem(request, problem("method_not_allowed", message, allow=allowed))
    if error.status_code == HTTPStatus.NOT_FOUND:
        message, hint = "there is nothing under this path", "GET / lists the paths"
        return respond_problem(request, problem("not_found", message, hint))
    failure = Failure("bad_frame", error.detail)
    return respond_problem(request, ProblemError(failure, status=error.status_code))


def _methods(path: str) -> list[str]:
    """What is served under a path."""
    parts = path.rstrip("/").split("/")
    found = {
        one.method
        for one in OPERATIONS
        if len(known := one.path.split("/")) == len(parts)
        and all(a == b or a.startswith("{") for a, b in zip(known, parts, strict=True))
    } or {"GET"}
    return sorted({*found, "OPTIONS"} | ({"HEAD"} if "GET" in found else set()))


def _failed(request: AnyRequest, error: Exception) -> Response[bytes]:
    """A bug of ours; it is never told, only where the log speaks of it."""
    request_id = str(request.scope.get(REQUEST_ID, ""))
    log.error("http_route_failed", request_id=request_id, exc_info=error)
    message = f"something went wrong inside (request id {request_id})"
    failure = Failure("internal", message, f"search the daemon's log for {request_id}")
    return respond_problem(request, ProblemError(failure))
