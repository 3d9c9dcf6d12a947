"""Answers as HTTP responses."""

import hashlib
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Response

from remit.faces.http.body import AnyRequest
from remit.faces.http.gate import REQUEST_ID
from remit.faces.http.problems import (
    MEDIA_TYPE,
    ProblemError,
    problem_body,
    problem_headers,
)
from remit_client.wire import Answer

JSON = "application/json"
_NOTHING = b""


def respond(
    answer: Answer, body: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """A good answer with this body."""
    return Response(
        msgspec.json.encode(body),
        media_type=JSON,
        status_code=status,
        headers=_decided(answer) | (headers or {}),
    )


def respond_tagged(request: AnyRequest, answer: Answer, body: Any) -> Response[bytes]:
    """A good answer under a tag that is the same for as long as the body is."""
    content = msgspec.json.encode(body)
    tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    headers = _decided(answer) | {"ETag": tag, "Cache-Control": "private, no-cache"}
    if _matches(request.headers.get("if-none-match", ""), tag):
        return Response(_NOTHING, status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=JSON, status_code=HTTPStatus.OK, headers=headers)


def respond_problem(request: AnyRequest, error: ProblemError) -> Response[bytes]:
    """A bad answer."""
    request_id = str(request.scope.get(REQUEST_ID, ""))
    headers = problem_headers(error)
    if error.decision:
        headers["Remit-Decision"] = error.decision
    return Response(
        problem_body(error, request_id),
        media_type=MEDIA_TYPE,
        status_code=error.status,
        headers=headers,
    )


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
