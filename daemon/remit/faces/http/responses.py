"""Responses: answers of events as JSON, and failures as `application/problem+json` (RFC 9457)."""

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from remit_client.wire import Answer, Failure

REQUEST_ID = "remit_request_id"
"""The key under which the id of a request stands in its scope."""

STATUS: Mapping[str, int] = {
    "bad_frame": 400,
    "unauthenticated": 401,
    "denied": 403,
    "exceeds_parent": 403,
    "not_found": 404,
    "unknown_agent": 404,
    "unknown_event": 404,
    "method_not_allowed": 405,
    "approval_pending": 409,
    "conflict": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "wrong_host": 421,
    "invalid_data": 422,
    "invalid_definition": 422,
    "invalid_name": 422,
    "invalid_pattern": 422,
    "limit_exceeded": 429,
    "fetch_failed": 502,
    "cancelled": 503,
    "store_unavailable": 503,
    "tool_failed": 502,
    "unavailable": 503,
    "timeout": 504,
}
"""The status of each error code; a code that is not here is a bug of ours, and 500."""

SLOW_BODY = 408
LARGE_HEAD = 431
JSON = "application/json"
PROBLEM_JSON = "application/problem+json"


class ProblemBody(msgspec.Struct, frozen=True, omit_defaults=False):
    """What is told of a failure (RFC 9457), with the stable code that programs compare."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    details: dict[str, Any]
    request_id: str


class ProblemError(Exception):
    """A request that ends here."""

    def __init__(self, failure: Failure, *, status: int | None = None, decision: str = "") -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.status = status if status is not None else STATUS.get(failure.code, 500)
        self.decision = decision


def problem(code: str, message: str, hint: str = "", **details: Any) -> ProblemError:
    """A problem that the face itself has found."""
    return ProblemError(Failure(code, message, hint, details))


def respond(
    answer: Answer, body: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A good answer with this body."""
    return Response(
        msgspec.json.encode(body),
        media_type=JSON,
        status_code=status,
        headers=_decided(answer) | (headers or {}),
    )


def respond_tagged(request: Request, answer: Answer, body: Any) -> Response:
    """A good answer under a tag that is the same for as long as the body is."""
    content = msgspec.json.encode(body)
    tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    headers = _decided(answer) | {"ETag": tag, "Cache-Control": "private, no-cache"}
    if _matches(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=JSON, status_code=HTTPStatus.OK, headers=headers)


def respond_problem(request: Request, error: ProblemError) -> Response:
    """A bad answer."""
    request_id = str(request.scope.get(REQUEST_ID, ""))
    headers = problem_headers(error)
    if error.decision:
        headers["Remit-Decision"] = error.decision
    return Response(
        problem_body(error, request_id),
        media_type=PROBLEM_JSON,
        status_code=error.status,
        headers=headers,
    )


def problem_body(error: ProblemError, request_id: str) -> bytes:
    """The body of the answer."""
    failure = error.failure
    body = ProblemBody(
        type=f"urn:remit:problem:{failure.code}",
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=failure.message,
        code=failure.code,
        hint=failure.hint,
        details=dict(failure.details),
        request_id=request_id,
    )
    return msgspec.json.encode(body)


def problem_headers(error: ProblemError) -> dict[str, str]:
    """The headers that belong to a status."""
    headers = {}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="remit"'
    seconds = error.failure.details.get("retry_after")
    if isinstance(seconds, int | float):
        # Whole seconds, and never 0: who comes back too early is counted again.
        headers["Retry-After"] = str(max(1, int(seconds) + (seconds % 1 > 0)))
    allowed = error.failure.details.get("allow")
    if error.status == HTTPStatus.METHOD_NOT_ALLOWED and isinstance(allowed, list):
        headers["Allow"] = ", ".join(allowed)
    return headers


def _decided(answer: Answer) -> dict[str, str]:
    told = {"Remit-Decision": answer.decision, "Remit-Revision": str(answer.revision)}
    if answer.warnings:
        told["Remit-Warning"] = ", ".join(
            f"{one['code']}; {one['message']}" for one in answer.warnings
        )
    return told


def _matches(shown: str, tag: str) -> bool:
    known = [one.strip().removeprefix("W/") for one in shown.split(",")]
    return tag in known or "*" in known
