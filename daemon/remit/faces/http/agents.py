"""/v1/agents: agents as resources. Each route is an event, or two."""

from http import HTTPStatus
from typing import Any

from litestar import Response

from remit.faces.http.answers import respond, respond_tagged
from remit.faces.http.body import AnyRequest, read_object
from remit.faces.http.document import Agent, AgentCreate, AgentPage, AgentPatch, Ended, NewAgent
from remit.faces.http.doorway import Doorway, good
from remit.faces.http.operations import COMMON, PAGE, Operation, page_of

_FLEETING = frozenset({"use", "bill", "process", "connected"})
"""What changes without anybody changing the agent; agent:status tells it."""


def doorway_of(request: AnyRequest) -> Doorway:
    """What leads to the daemon."""
    found: Doorway = request.app.state["doorway"]
    return found


async def create(request: AnyRequest) -> Response[Any]:
    """agent:spawn, and agent:status of what came of it."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    data = read_object(await doorway.read_body(request, bearer))
    if "id" in data:
        data["agent_id"] = data.pop("id")
    answer = good(await doorway.call(request, bearer, "agent:spawn", data))
    made = answer.data["agent_id"]
    seen = await doorway.call(request, bearer, "agent:status", {"agent_id": made})
    # Who may spawn and not look is told what agent:spawn says.
    resource = _resource(answer.data if seen.error is not None else seen.data)
    told = {name: answer.data[name] for name in ("credentials", "warnings")}
    body = resource | told
    headers = {"Location": f"/v1/agents/{made}"}
    return respond(answer, body, status=HTTPStatus.CREATED, headers=headers)


async def update(request: AnyRequest) -> Response[Any]:
    """agent:update, and agent:status of what came of it."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    data = read_object(await doorway.read_body(request, bearer))
    name = request.path_params["id"]
    answer = await doorway.call(request, bearer, "agent:update", data | {"agent_id": name})
    changed = good(answer).data
    seen = await doorway.call(request, bearer, "agent:status", {"agent_id": name})
    resource = _resource(changed if seen.error is not None else seen.data)
    return respond(answer, resource | {"warnings": changed["warnings"]})


async def show(request: AnyRequest) -> Response[Any]:
    """agent:status."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    data = {"agent_id": request.path_params["id"]}
    answer = good(await doorway.call(request, bearer, "agent:status", data))
    return respond_tagged(request, answer, _resource(answer.data))


async def show_all(request: AnyRequest) -> Response[Any]:
    """agent:list."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    answer = good(await doorway.call(request, bearer, "agent:list", page_of(request)))
    items = [_resource(one) for one in answer.data["items"]]
    return respond_tagged(request, answer, answer.data | {"items": items})


async def end(request: AnyRequest) -> Response[Any]:
    """agent:terminate."""
    doorway = doorway_of(request)
    bearer = doorway.identify(request)
    data = {"agent_id": request.path_params["id"]}
    answer = good(await doorway.call(request, bearer, "agent:terminate", data))
    return respond(answer, _resource(answer.data))


def _resource(told: dict[str, Any]) -> dict[str, Any]:
    """What an event tells about an agent, as the resource is shown."""
    kept = {name: value for name, value in told.items() if name not in _FLEETING}
    return {"id": kept.pop("agent_id")} | kept


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/agents",
        name="list_agents",
        event="agent:list",
        summary="List yourself and your descendants in the order in which they came.",
        serve=show_all,
        query=PAGE,
        answer=AgentPage,
        is_tagged=True,
    ),
    Operation(
        method="POST",
        path="/v1/agents",
        name="create_agent",
        event="agent:spawn",
        summary="Create an agent under yourself, with no more than you hold.",
        serve=create,
        body=AgentCreate,
        answer=NewAgent,
        status=HTTPStatus.CREATED,
        problems=(*COMMON, 408, 415),
    ),
    Operation(
        method="GET",
        path="/v1/agents/{id}",
        name="get_agent",
        event="agent:status",
        summary="Show one of your descendants, or yourself.",
        serve=show,
        answer=Agent,
        is_tagged=True,
    ),
    Operation(
        method="PATCH",
        path="/v1/agents/{id}",
        name="update_agent",
        event="agent:update",
        summary="Change one of your descendants; a list takes the place of the one before.",
        serve=update,
        body=AgentPatch,
        answer=Agent,
        problems=(*COMMON, 408, 415),
    ),
    Operation(
        method="DELETE",
        path="/v1/agents/{id}",
        name="delete_agent",
        event="agent:terminate",
        summary="End an agent and all its descendants: they are shut out at once.",
        serve=end,
        answer=Ended,
    ),
)
