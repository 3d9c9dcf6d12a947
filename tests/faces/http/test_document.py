"""Whatever is sent, the answer is one that the document of the API tells of; never a 5xx."""

from collections.abc import Generator
from typing import Any

import anyio.from_thread
import httpx
import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.faces.http.world import World, served
from tests.fakes import built_in_handlers

from remit.faces.http.openapi import Operation, document
from remit.faces.http.operations import OPERATIONS


def request_type(event: str) -> type[msgspec.Struct] | None:
    found = HANDLERS.get(event)
    return None if found is None else found.shape.request_type


HANDLERS = built_in_handlers()
DOCUMENT = document(OPERATIONS, request_type)
CALLED = [one for one in OPERATIONS if one.name not in ("stream", "metrics")]
RELAXED = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = st.sampled_from(["current_time", "observer", "bob", "operator", "state:get", "*", "", "x"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


class Client:
    """A client of a served face in another thread."""

    def __init__(self, world: World, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=world.face.endpoint, headers=headers, timeout=10)


@pytest.fixture(scope="module", params=["operator", "ann"])
def client(request: pytest.FixtureRequest) -> Generator[Client]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(served()) as world,
    ):
        portal.call(world.add, "ann", "base_multi_agent")
        found = Client(world, portal.call(world.token, request.param))
        yield found
        found.http.close()


def bodies(one: Operation) -> st.SearchStrategy[Any]:
    """Bodies with the fields that are described, of any value; and others."""
    if one.body is None:
        return st.none()
    schema = _resolved(DOCUMENT["paths"][one.path][one.method.lower()]["requestBody"])
    fields = sorted(schema.get("properties", {"key": {}, "event": {}}))
    known = st.dictionaries(st.sampled_from(fields), JSON | st.lists(WORDS), max_size=4)
    return known | st.dictionaries(st.text(), JSON, max_size=3) | JSON


def _resolved(body: dict[str, Any]) -> dict[str, Any]:
    schema = body["content"]["application/json"]["schema"]
    if "$ref" in schema:
        return dict(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    return dict(schema)


EVENTS = st.sampled_from(sorted(HANDLERS))
# A client resolves "." and ".." by itself; test_hostile_clients.py sends them.
NAMES = WORDS.filter(bool) | st.text("abc:_%é\x00", min_size=1, max_size=20)
LIMITS = st.integers(-1, 1001).map(str) | st.text(max_size=5)


@pytest.mark.parametrize("one", CALLED, ids=lambda one: one.name)
@RELAXED
@given(data=st.data())
def test_every_answer_is_one_that_is_documented(
    client: Client, one: Operation, data: st.DataObject
) -> None:
    path = one.path
    for name in one.parameters:
        drawn = data.draw(NAMES | EVENTS if name == "event" else NAMES)
        path = path.replace(f"{{{name}}}", httpx.QueryParams({"x": drawn}).__str__()[2:])
    params = {q.name: data.draw(LIMITS) for q in one.query if data.draw(st.booleans())}
    body = data.draw(bodies(one))
    if "system:" in path or "config:" in path or "launch" in path:
        return
    answer = client.http.request(one.method, path, params=params, json=body)
    assert answer.status_code < 500, answer.text
    check(one, path, answer)


def check(one: Operation, path: str, answer: httpx.Response) -> None:
    told = DOCUMENT["paths"][one.path][one.method.lower()]["responses"]
    assert str(answer.status_code) in told, (path, answer.status_code, answer.text)
    content = told[str(answer.status_code)].get("content", {})
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if not content:
        assert answer.content == b""
        return
    assert kind in content, (path, kind)
    if kind.endswith("json"):
        schema = content[kind]["schema"] | {"components": DOCUMENT["components"]}
        jsonschema.validate(answer.json(), schema, cls=jsonschema.Draft202012Validator)


def test_the_document_describes_what_the_events_take() -> None:
    """Two types of one thing part ways sooner or later: this is the moment."""
    for one in OPERATIONS:
        if one.body is None or one.event == "any":
            continue
        described = set(
            _resolved(DOCUMENT["paths"][one.path][one.method.lower()]["requestBody"])["properties"]
        )
        taken = set(HANDLERS[one.event].input_schema["properties"])
        renamed = {"id" if name == "agent_id" else name for name in taken}
        assert described == renamed - set(one.parameters), one.name


def test_the_names_of_schemas_stay_as_clients_were_made_from_them() -> None:
    assert sorted(DOCUMENT["components"]["schemas"]) == [
        "Agent",
        "AgentCreate",
        "AgentPage",
        "AgentPatch",
        "AgentSummary",
        "Alive",
        "Capability",
        "CapabilityPage",
        "Check",
        "CheckResult",
        "Checked",
        "Chosen",
        "CreateRequest",
        "Credentials",
        "Ended",
        "File",
        "LaunchRequest",
        "Limits",
        "NewAgent",
        "ProblemBody",
        "Ready",
    ]


def test_every_event_behind_a_route_is_there() -> None:
    assert {one.event for one in OPERATIONS} - {"", "any"} <= HANDLERS.keys()
