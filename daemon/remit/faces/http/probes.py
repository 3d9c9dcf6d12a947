"""What is told without a name: is it alive, is it ready, how much does it do."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Response

from remit.faces.http.agents import doorway_of
from remit.faces.http.answers import JSON
from remit.faces.http.body import AnyRequest
from remit.faces.http.document import Alive, Ready
from remit.faces.http.operations import Operation
from remit.faces.http.problems import ProblemError

METRICS = "text/plain; version=0.0.4"


class Probes(msgspec.Struct, frozen=True):
    """What the daemon tells of itself."""

    problems: Callable[[], Awaitable[list[str]]]
    """What keeps it from serving as it should."""
    numbers: Callable[[], Mapping[str, float]]
    """What it has counted; no name of anybody or of any event is in there."""


async def alive(request: AnyRequest) -> Response[Any]:
    """The loop runs, or this would not be answered."""
    return _json(Alive("ok"))


async def ready(request: AnyRequest) -> Response[Any]:
    """The definitions are in force and the store answers."""
    problems = await _probes(request).problems()
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return _json(Ready("not_ready" if problems else "ready", problems), status=status)


async def metrics(request: AnyRequest) -> Response[Any]:
    """Totals without a token on loopback only; with one, what system:stats tells its holder."""
    from remit.faces.http.metrics import exposition  # noqa: PLC0415 - only where one scrapes

    doorway = doorway_of(request)
    by_event: Mapping[str, int] = {}
    try:
        bearer = doorway.identify(request)
    except ProblemError:
        is_loopback = request.app.state["is_loopback"]
        if "authorization" in request.headers or request.query_params or not is_loopback:
            raise
    else:
        by_event = (await doorway.ask(request, bearer, "system:stats", {}))["by_event"]
    text = exposition(_probes(request).numbers(), doorway.stats, by_event)
    return Response(text, media_type=METRICS)


def _probes(request: AnyRequest) -> Probes:
    found: Probes = request.app.state["probes"]
    return found


def _json(body: msgspec.Struct, *, status: int = HTTPStatus.OK) -> Response[Any]:
    return Response(msgspec.json.encode(body), media_type=JSON, status_code=status)


OPERATIONS = (
    Operation(
        method="GET",
        path="/healthz",
        name="healthz",
        summary="Tell whether the loop is alive.",
        serve=alive,
        answer=Alive,
        problems=(500,),
    ),
    Operation(
        method="GET",
        path="/readyz",
        name="readyz",
        summary="Tell whether the definitions are valid and the store is open.",
        serve=ready,
        answer=Ready,
        problems=(500, 503),
    ),
    Operation(
        method="GET",
        path="/metrics",
        name="metrics",
        event="system:stats",
        summary="Count for Prometheus; events by name only with a token that may see them.",
        serve=metrics,
        answer="text/plain",
        problems=(401, 403, 429, 500, 503, 504),
    ),
)
