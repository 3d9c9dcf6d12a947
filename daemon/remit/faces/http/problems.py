"""Failures as `application/problem+json`, each under its status."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from remit_client.wire import Failure

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
"""By the code of a failure; what stands not here is a bug of ours, and 500."""

SLOW_BODY = 408
LARGE_HEAD = 431
MEDIA_TYPE = "application/problem+json"


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
