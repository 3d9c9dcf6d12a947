"""What a caller may not see is nowhere: at no path of HTTP, and in no method of MCP."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import Request, Result
from tests.acceptance.hidden import Hidden, hidden_world, shown, twin
from tests.outside.hosts import host

from remit.faces.http.openapi import Operation
from remit.faces.http.operations import OPERATIONS

PATHS = {
    "/v1/agents/{id}": "agent",
    "/v1/capabilities/{id}": "capability",
    "/v1/events/{event}": "event",
}
"""What stands in each path with a parameter."""
QUERIES = {"limit", "after", "pattern", "channel"}
TAGS: tuple[dict[str, str], ...] = (
    {},
    {"If-None-Match": "*"},
    {"If-None-Match": '"0"'},
    {"Remit-Session": "hush-session"},
)
VOLATILE = {"content-length", "date", "x-request-id", "remit-decision", "remit-revision"}


@pytest.fixture(scope="module")
def world() -> Iterator[Hidden]:
    with hidden_world() as found:
        yield found


def routes() -> list[tuple[str, Operation]]:
    found = [(one.method, one) for one in OPERATIONS if one.parameters]
    return [*found, *(("OPTIONS", one) for _, one in found), *(("HEAD", one) for _, one in found)]


def test_every_parameter_of_a_path_is_classified_and_no_other() -> None:
    assert {one.path for one in OPERATIONS if one.parameters} == PATHS.keys()
    assert {query.name for one in OPERATIONS for query in one.query} == QUERIES


@pytest.mark.parametrize(("method", "route"), routes(), ids=lambda one: getattr(one, "path", one))
def test_a_path_that_is_hidden_is_as_one_that_does_not_exist(
    world: Hidden, method: str, route: Operation
) -> None:
    with world.http() as http:
        for name in world.names[PATHS[route.path]]:
            for headers in TAGS:
                answers = [
                    heard(http, method, route.path, one, headers) for one in (name, twin(name))
                ]
                assert answers[0].replace(name, "NAME") == answers[1].replace(twin(name), "NAME")


def heard(http: httpx.Client, method: str, path: str, name: str, headers: dict[str, str]) -> str:
    head, _, tail = path.partition("{")
    address = head + name + tail.partition("}")[2]
    body: Any = {} if method in ("POST", "PATCH") else None
    answer = http.request(method, address, json=body, headers=headers)
    kept = sorted(item for item in answer.headers.items() if item[0] not in VOLATILE)
    text = answer.text
    if text:
        text = json.dumps({**answer.json(), "request_id": ""}, sort_keys=True)
    return f"{answer.status_code} {kept} {text}"


@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("POST", "profile"),
        ("POST", "capabilities"),
        ("POST", "id"),
        ("PATCH", "profile"),
        ("PATCH", "capabilities"),
    ],
)
def test_a_body_that_names_what_is_hidden_is_as_one_that_names_nothing(
    world: Hidden, method: str, field: str
) -> None:
    kind = {"profile": "profile", "capabilities": "capability", "id": "agent"}[field]
    path = "/v1/agents" if method == "POST" else "/v1/agents/probe-kid"
    with world.http() as http:
        for name in world.names[kind]:
            answers = []
            for one in (name, twin(name)):
                value = [one] if field == "capabilities" else one
                answer = http.request(method, path, json={field: value})
                body = answer.json()
                made = body.get("id", "") if method == "POST" else ""
                if answer.status_code == httpx.codes.CREATED:
                    http.delete(f"/v1/agents/{made}").raise_for_status()
                body |= {"request_id": "", "id": made.partition("-")[0]}
                answers.append((answer.status_code, shown(body, name, twin(name))))
            assert answers[0] == answers[1]


def test_a_stream_of_what_is_hidden_is_as_one_of_nothing(world: Hidden) -> None:
    asked = {"pattern": world.names["pattern"], "channel": world.names["channel"]}
    with world.http() as http:
        for parameter, names in asked.items():
            for name in names:
                answers = []
                for one in (name, twin(name)):
                    with http.stream("GET", "/v1/stream", params={parameter: one}) as answer:
                        body = "" if answer.is_success else answer.read().decode()
                        body = json.loads(body) | {"request_id": ""} if body else {}
                        answers.append((answer.status_code, shown(body, name, twin(name))))
                assert answers[0] == answers[1]


# ---- MCP ----


class Raw(Result):
    """Whatever is answered."""

    model_config: ClassVar[Any] = {"extra": "allow"}


async def call(client: Client, name: str) -> Any:
    return await client.call_tool(name, {})


async def call_wrapped(client: Client, name: str) -> Any:
    return await client.call_tool("call_capability", {"name": name, "arguments": {}})


async def prompt(client: Client, name: str) -> Any:
    return await client.get_prompt(name)


async def resource(client: Client, name: str) -> Any:
    return await client.read_resource(f"skill://{name.removeprefix('skill:')}/SKILL.md")


async def directory(client: Client, name: str) -> Any:
    return await send(client, "resources/directory/read", f"skill://{name.removeprefix('skill:')}/")


async def skill(client: Client, name: str) -> Any:
    return await send(client, "skills/get", f"skill://{name.removeprefix('skill:')}/SKILL.md")


async def send(client: Client, method: str, uri: str) -> Any:
    request = Request[dict[str, Any], str](method=method, params={"uri": uri})
    return await client.session.send_request(request, Raw)


DOORS = {
    call: ["tool", "thing", "event"],
    call_wrapped: ["tool", "thing", "event"],
    prompt: ["skill"],
    resource: ["skill"],
    directory: ["skill"],
    skill: ["skill"],
}


@pytest.mark.parametrize("door", DOORS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_host_hears_of_a_hidden_name_what_it_hears_of_none(
    world: Hidden, door: Any, era: str
) -> None:
    names = [name for kind in DOORS[door] for name in world.names[kind]]
    if door in (call, call_wrapped):
        names += ["hush_tool", "hush_look", "mcp_hush_hush_tool", "hush__hush_tool"]
    async with host(world.daemon, "probe", mode=era) as client:
        await client.list_tools()
        for name in names:
            answers = []
            for one in (name, twin(name)):
                try:
                    found = (await door(client, one)).model_dump(mode="json")
                except MCPError as error:
                    found = [error.error.code, error.error.message, repr(error.error.data)]
                answers.append(shown(found, name, twin(name)))
            assert answers[0] == answers[1]


async def test_a_search_for_a_hidden_name_finds_nothing_of_it(world: Hidden) -> None:
    """Words are ranked by what they mean, so two words do not find the same."""
    async with host(world.daemon, "probe") as client:
        for name in world.names["thing"]:
            found = await client.call_tool("discover_capabilities", {"query": name})
            assert "hush" not in found.model_dump_json().replace(name, "")
