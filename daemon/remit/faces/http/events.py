"""/v1/events, /v1/check, /v1/stream and /v1/capabilities."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from litestar import Response
from litestar.response import Stream as Streamed

from remit.faces.http.agents import doorway_of
from remit.faces.http.answers import respond, respond_tagged
from remit.faces.http.body import AnyRequest, read_object
from remit.faces.http.document import Capability, CapabilityCreate, CapabilityPage, Check, Checked
from remit.faces.http.doorway import good
from remit.faces.http.gate import ABORT, AT_END, IS_HEAD
from remit.faces.http.operations import COMMON, PAGE, Operation, Query, page_of
from remit.faces.http.streams import Streams

EVENT_STREAM = "text/event-stream"
_STREAM_QUERY = frozenset({"pattern", "channel"})


async def call_event(request: AnyRequest) -> Response[Any]:
    """Any event; the body is its data."""
    return await _translated(request, request.path_params["event"])


async def check(request: AnyRequest) -> Response[Any]:
    """permission:check_many."""
    return await _translated(request, "permission:check_many")


async def create_capability(request: AnyRequest) -> Response[Any]:
    """capability:create."""
    return await _translated(request, "capability:create", status=HTTPStatus.CREATED)


async def _translated(
    request: AnyRequest, event: str, *, status: int = HTTPStatus.OK
) -> Response[Any]:
    """Hand a body to an event as it came in, and its answer back as it is."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    body = await doorway.read_body(request, bearer)
    read_object(body)
    answer = good(await doorway.call(request, bearer, event, body, raw=True))
    return respond(answer, answer.data, status=status)


async def list_capabilities(request: AnyRequest) -> Response[Any]:
    """capability:list."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    answer = good(await doorway.call(request, bearer, "capability:list", page_of(request)))
    return respond_tagged(request, answer, answer.data)


async def get_capability(request: AnyRequest) -> Response[Any]:
    """capability:get."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    data = {"id": request.path_params["id"]}
    answer = good(await doorway.call(request, bearer, "capability:get", data))
    return respond_tagged(request, answer, answer.data)


async def stream(request: AnyRequest) -> Response[Any]:
    """event:subscribe and message:subscribe, on a connection that stays open."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    asked = _asked_for(request)
    streams: Streams = request.app.state["streams"]
    abort: Callable[[], None] = request.scope.get(ABORT, lambda: None)  # type: ignore[assignment]
    opened = streams.open(bearer, abort)
    at_end: list[Callable[[], None]] = request.scope[AT_END]  # type: ignore[literal-required]
    at_end.append(partial(streams.close, opened))
    for event, data in asked:
        good(await doorway.call(request, bearer, event, data, connection=opened))
    headers = {"X-Accel-Buffering": "no"}
    if request.scope.get(IS_HEAD):
        return Response(b"", media_type=EVENT_STREAM, headers=headers)
    return Streamed(streams.pieces(opened), media_type=EVENT_STREAM, headers=headers)


def _asked_for(request: AnyRequest) -> list[tuple[str, dict[str, Any]]]:
    given = request.query_params.dict()
    unknown = sorted(given.keys() - _STREAM_QUERY)
    if unknown:
        # Refused by the event itself, in its own words.
        return [("event:subscribe", {"patterns": ["*"], unknown[0]: given[unknown[0]]})]
    asked: list[tuple[str, dict[str, Any]]] = []
    if patterns := given.get("pattern", [] if "channel" in given else ["*"]):
        asked.append(("event:subscribe", {"patterns": patterns}))
    if channels := given.get("channel"):
        asked.append(("message:subscribe", {"channels": channels}))
    return asked


_WITH_BODY = (*COMMON, 408, 415)

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/capabilities",
        name="list_capabilities",
        event="capability:list",
        summary="List the capabilities whose events you may use.",
        serve=list_capabilities,
        query=PAGE,
        answer=CapabilityPage,
        is_tagged=True,
    ),
    Operation(
        method="POST",
        path="/v1/capabilities",
        name="create_capability",
        event="capability:create",
        summary="Make a declarative capability out of what you hold.",
        serve=create_capability,
        body=CapabilityCreate,
        answer=dict[str, Any],
        status=HTTPStatus.CREATED,
        problems=_WITH_BODY,
    ),
    Operation(
        method="GET",
        path="/v1/capabilities/{id}",
        name="get_capability",
        event="capability:get",
        summary="Tell everything about one capability.",
        serve=get_capability,
        answer=Capability,
        is_tagged=True,
    ),
    Operation(
        method="POST",
        path="/v1/check",
        name="check",
        event="permission:check_many",
        summary="Tell of many events at once whether they may be used.",
        serve=check,
        body=Check,
        answer=Checked,
        problems=_WITH_BODY,
    ),
    Operation(
        method="POST",
        path="/v1/events/{event}",
        name="call_event",
        event="any",
        summary="Call any event; the body is its data, and the answer what it answers.",
        serve=call_event,
        body=dict[str, Any],
        answer=Any,
        problems=_WITH_BODY,
    ),
    Operation(
        method="GET",
        path="/v1/stream",
        name="stream",
        event="event:subscribe",
        summary="Hear of events as they happen and as far as you may see them.",
        serve=stream,
        query=(
            Query(
                "pattern",
                {"type": "array", "items": {"type": "string"}},
                "event names, or prefixes that end in `*`; absent: all that you may see",
            ),
            Query(
                "channel",
                {"type": "array", "items": {"type": "string"}},
                "channels to listen to; needs message:subscribe",
            ),
        ),
        answer=EVENT_STREAM,
    ),
)
