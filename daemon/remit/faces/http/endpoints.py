"""The functions that answer operations: a request becomes events, and their answers a response.

None decides anything: the dispatcher does, event by event.
"""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import anyio
import msgspec
from starlette.responses import Response, StreamingResponse

from remit.errors import RemitError
from remit.faces.http.gateway import Exchange, Probes, read_object
from remit.faces.http.responses import JSON, ProblemError, problem, respond, respond_tagged
from remit.faces.http.server import ABORT, HttpStats
from remit.kernel.dispatch.context import Kernel

IS_HEAD = "remit_is_head"
"""The scope key that says whether a GET stands for a HEAD."""

EVENT_STREAM = "text/event-stream"
METRICS = "text/plain; version=0.0.4"
_GAUGES = frozenset(
    {"agents", "clients", "disk_full", "revision", "stale", "streams", "uptime_seconds"}
)
_STREAM_QUERY = frozenset({"pattern", "channel"})
_FLEETING = frozenset({"use", "bill", "process", "connected"})
"""Fields of agents that change without anybody changing the agent; agent:status has them."""
_LONGEST_NUMBER = 18
_STORE_SECONDS = 2.0


# ---- operations that are one event ----


async def translate(exchange: Exchange) -> Response:
    """Hand the body to the operation's event as it came in, and the answer back as it is."""
    return await _translate(exchange, exchange.operation.event)


async def call_event(exchange: Exchange) -> Response:
    """Call the event of the path; the body is its data."""
    return await _translate(exchange, exchange.request.path_params["event"])


async def show(exchange: Exchange) -> Response:
    """Answer the operation's event for the thing that the path names."""
    bearer = exchange.identify()
    params = exchange.request.path_params
    answer = await exchange.ask(bearer, exchange.operation.event, params)
    return respond_tagged(exchange.request, answer, answer.data)


async def show_page(exchange: Exchange) -> Response:
    """Answer the operation's event for one page of a list."""
    bearer = exchange.identify()
    answer = await exchange.ask(bearer, exchange.operation.event, _page_query(exchange))
    return respond_tagged(exchange.request, answer, answer.data)


async def _translate(exchange: Exchange, event: str) -> Response:
    bearer = exchange.identify()
    body = await exchange.read_body(bearer)
    read_object(body)
    answer = await exchange.ask(bearer, event, body, raw=True)
    return respond(answer, answer.data, status=exchange.operation.status)


def _page_query(exchange: Exchange) -> dict[str, Any]:
    """The query of a list as data; the event refuses what it does not know."""
    data: dict[str, Any] = {}
    for name, values in exchange.query().items():
        if len(values) > 1:
            raise problem("invalid_data", f"{name!r} is given twice", path=f"$.{name}")
        data[name] = _number(values[0]) if name == "limit" else values[0]
    return data


def _number(text: str) -> int | str:
    """A number; another text is left for the event to refuse."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else text


# ---- agents as resources ----


async def list_agents(exchange: Exchange) -> Response:
    """agent:list."""
    bearer = exchange.identify()
    answer = await exchange.ask(bearer, "agent:list", _page_query(exchange))
    items = [_resource(one) for one in answer.data["items"]]
    return respond_tagged(exchange.request, answer, answer.data | {"items": items})


async def create_agent(exchange: Exchange) -> Response:
    """agent:spawn, and agent:status of the new agent."""
    bearer = exchange.identify()
    data = read_object(await exchange.read_body(bearer))
    if "id" in data:
        data["agent_id"] = data.pop("id")
    answer = await exchange.ask(bearer, "agent:spawn", data)
    name = answer.data["agent_id"]
    status = await exchange.call(bearer, "agent:status", {"agent_id": name})
    # A caller that may spawn and not look is told what agent:spawn says.
    resource = _resource(answer.data if status.error is not None else status.data)
    told = {name: answer.data[name] for name in ("credentials", "warnings")}
    headers = {"Location": f"/v1/agents/{name}"}
    return respond(answer, resource | told, status=exchange.operation.status, headers=headers)


async def show_agent(exchange: Exchange) -> Response:
    """agent:status."""
    bearer = exchange.identify()
    data = {"agent_id": exchange.request.path_params["id"]}
    answer = await exchange.ask(bearer, "agent:status", data)
    return respond_tagged(exchange.request, answer, _resource(answer.data))


async def update_agent(exchange: Exchange) -> Response:
    """agent:update, and agent:status of the changed agent."""
    bearer = exchange.identify()
    data = read_object(await exchange.read_body(bearer))
    name = exchange.request.path_params["id"]
    answer = await exchange.ask(bearer, "agent:update", data | {"agent_id": name})
    status = await exchange.call(bearer, "agent:status", {"agent_id": name})
    resource = _resource(answer.data if status.error is not None else status.data)
    return respond(answer, resource | {"warnings": answer.data["warnings"]})


async def delete_agent(exchange: Exchange) -> Response:
    """agent:terminate."""
    bearer = exchange.identify()
    data = {"agent_id": exchange.request.path_params["id"]}
    answer = await exchange.ask(bearer, "agent:terminate", data)
    return respond(answer, _resource(answer.data))


def _resource(data: dict[str, Any]) -> dict[str, Any]:
    """An agent as an event tells of it, in the form of the resource."""
    lasting = {name: value for name, value in data.items() if name not in _FLEETING}
    return {"id": lasting.pop("agent_id")} | lasting


# ---- the stream ----


async def stream(exchange: Exchange) -> Response:
    """event:subscribe and message:subscribe, on a connection that stays open."""
    bearer, streams = exchange.identify(), exchange.gateway.streams
    subscriptions = _subscriptions(exchange)
    abort: Callable[[], None] = exchange.request.scope.get(ABORT, lambda: None)
    opened = streams.open(bearer, abort)
    exchange.at_end(partial(streams.close, opened))
    for event, data in subscriptions:
        await exchange.ask(bearer, event, data, connection=opened)
    headers = {"X-Accel-Buffering": "no"}
    if exchange.request.scope[IS_HEAD]:
        return Response(b"", media_type=EVENT_STREAM, headers=headers)
    return StreamingResponse(streams.pieces(opened), media_type=EVENT_STREAM, headers=headers)


def _subscriptions(exchange: Exchange) -> list[tuple[str, dict[str, Any]]]:
    """The events to call, with their data."""
    query = exchange.query()
    unknown = sorted(query.keys() - _STREAM_QUERY)
    if unknown:
        # Refused by the event itself, in its own words.
        return [("event:subscribe", {"patterns": ["*"], unknown[0]: query[unknown[0]]})]
    found: list[tuple[str, dict[str, Any]]] = []
    if patterns := query.get("pattern", [] if "channel" in query else ["*"]):
        found.append(("event:subscribe", {"patterns": patterns}))
    if channels := query.get("channel"):
        found.append(("message:subscribe", {"channels": channels}))
    return found


# ---- probes ----


def probes_of(kernel: Kernel) -> Probes:
    """The probes of a daemon."""
    return Probes(partial(_problems, kernel), partial(_numbers, kernel))


async def healthz(_exchange: Exchange) -> Response:
    """Answer that the event loop runs: otherwise there is no answer."""
    return Response(msgspec.json.encode({"status": "ok"}), media_type=JSON)


async def readyz(exchange: Exchange) -> Response:
    """Answer whether the definitions are in force and the store works."""
    problems = await exchange.gateway.probes.problems()
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    body = {"status": "not_ready" if problems else "ready", "problems": problems}
    return Response(msgspec.json.encode(body), status_code=status, media_type=JSON)


async def metrics(exchange: Exchange) -> Response:
    """Totals without a token on loopback only; with one, what system:stats tells its holder."""
    gateway, request = exchange.gateway, exchange.request
    by_event: Mapping[str, int] = {}
    try:
        bearer = exchange.identify()
    except ProblemError:
        if "authorization" in request.headers or request.query_params or not gateway.is_loopback:
            raise
    else:
        by_event = (await exchange.ask(bearer, "system:stats", {})).data["by_event"]
    text = _exposition(gateway.probes.numbers(), gateway.stats, by_event)
    return Response(text, media_type=METRICS)


async def _problems(kernel: Kernel) -> list[str]:
    """What keeps the daemon from serving as it should."""
    found = []
    if kernel.authority.is_stale:
        found.append("edited definitions do not compile; the last good ones are in force")
    if kernel.database.is_full:
        found.append("the disk is full; only denials and revocations are written")
    try:
        with anyio.fail_after(_STORE_SECONDS):
            await kernel.database.ping()
    except (RemitError, TimeoutError):
        found.append("the store does not answer")
    return found


def _numbers(kernel: Kernel) -> dict[str, float]:
    """Totals."""
    counters, bills = kernel.counters, kernel.bills
    found: dict[str, float] = {
        "agents": len(kernel.authority.fleet),
        "denied": counters.denied,
        "denied_repeats": kernel.audit_log.denials.counted,
        "failed": counters.failed,
        "internal_errors": counters.internal_errors,
        "requests": counters.requests,
        "revision": kernel.authority.catalogue.revision,
        "disk_full": int(kernel.database.is_full),
        "stale": int(kernel.authority.is_stale),
        "timeouts": counters.timeouts,
        "uptime_seconds": kernel.clock() - counters.started_at,
    }
    found |= {f"tokens_{kind}": sent for kind, sent in bills.sent.items()}
    found |= {"tokens_sent": bills.total.sent, "tokens_full_dump": bills.total.full_dump}
    found["turns"] = bills.total.turns
    for figures in kernel.figures:
        found |= figures()
    if (traffic := kernel.traffic) is not None:
        for name in ("clients", "crowded", "dropped", "silenced"):
            found[name] = getattr(traffic, name)
    return found


def _exposition(
    numbers: Mapping[str, float], stats: HttpStats, by_event: Mapping[str, int]
) -> bytes:
    """The counters in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - 40 ms: only where one scrapes
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415 - the same

    http = {f"http_{name}": value for name, value in msgspec.structs.asdict(stats).items()}
    families: list[Any] = []
    for name, value in sorted({**numbers, **http}.items()):
        is_gauge = name.removeprefix("http_") in _GAUGES
        kind = GaugeMetricFamily if is_gauge else CounterMetricFamily
        families.append(kind(f"remit_{name}", name.replace("_", " "), value=value))
    if by_event:
        events = CounterMetricFamily("remit_event_calls", "calls of an event", labels=["event"])
        for event, count in sorted(by_event.items()):
            events.add_metric([event], count)
        families.append(events)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return generate_latest(registry)


class _Families:
    """Metrics that were counted elsewhere, as the registry collects them."""

    def __init__(self, families: list[Any]) -> None:
        self.collect = lambda: families
