"""A name that a caller may not see is answered as one that does not exist: every field, every door.

The fields come from the schemas of the registered handlers, so a new event is asked about as soon
as it is there, and a field that nobody has classified fails.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.acceptance.hidden import Hidden, hidden_world, shown, told, twin, without_suffix
from tests.fakes import built_in_handlers

from remit_client.keys import new_key

NEW = "new: "
"""The kind of a name for something that is to be made."""
FREE = "free"
"""What is no name of anything that somebody else could have: texts, numbers, paths of one's own."""

KINDS: dict[str, str] = {
    "accept": FREE,  # a hash proves that one has seen it
    "card": FREE,
    "applies_to[]": "thing",
    "conflicts_with[]": "thing",
    "dependencies[]": "thing",
    "examples[].input": FREE,
    "examples[].note": FREE,
    "examples[].output": FREE,
    "model": FREE,
    "supersedes": "thing",
    "variants{}": FREE,
    "variants{}=": FREE,  # as the declaration says it; looked up when something is linked
    "version": FREE,
    "needs[]": "thing",
    "tools[]": "thing",
    "additional_tools[]": "tool",
    "agent": "agent",
    "agent_id": "agent",
    "agents[]": "agent",
    "allowed_tools[]": "tool",
    "audience": FREE,
    "capabilities[]": "capability",
    "capabilities[].config{}": FREE,
    "capabilities[].config{}=": FREE,
    "capabilities[].ref": "capability",
    "capabilities{}": "capability",
    "catalogue": FREE,
    "category": FREE,
    "channel": "channel",
    "channels[]": "channel",
    "city": FREE,
    "claude_tools[]": "model tool",
    "compositions{}": "profile file",
    "compositions{}=": "profile text",
    "config_schema{}": FREE,
    "config_schema{}=": FREE,
    "content": FREE,
    "data": FREE,
    "decision": "decision",
    "description": FREE,
    "disallowed_tools[]": "tool",
    "environment": FREE,
    "event": "event",
    "event_patterns[]": "pattern",
    "events[]": "event",
    "features[]": FREE,
    "files[]{}": FREE,
    "files[]{}=": FREE,
    "head": FREE,  # a hash of a row proves that one has seen it
    "icon": FREE,
    "key": FREE,  # the state is shared by those who may read it
    "launch.command": FREE,  # entries of the operator's list, the same for everybody
    "launch.values{}": FREE,
    "launch.values{}=": FREE,
    "limits.state_prefixes[]": FREE,
    "message": FREE,
    "messages[]": FREE,
    "messages[].content": FREE,
    "messages[].role": FREE,
    "module": "module",
    "mounts[].content": FREE,
    "mounts[].path": FREE,
    "namespace": "namespace",
    "note": FREE,
    "outcome": FREE,
    "owner": "agent",
    "participants[]": "agent",
    "path": FREE,
    "path_pattern": FREE,
    "pattern": FREE,
    "patterns[]": "pattern",
    "prefix": FREE,
    "profile": "profile",
    "profiles[]": "profile",
    "public_key": FREE,  # whoever can guess one has it already
    "query": FREE,
    "reason": FREE,
    "remove[]": "profile file",
    "requires[]": "capability",
    "resource_limits.state_prefixes[]": FREE,
    "session": "session",
    "session_type": FREE,
    "skills[]": "skill",
    "system_prompt": FREE,
    "tags[]": FREE,
    "timezone": FREE,
    "todos[].activeForm": FREE,
    "todos[].content": FREE,
    "url": FREE,
    "user_tier": FREE,
    "value": FREE,
    "variables{}": FREE,
    "variables{}=": FREE,
}
"""By field; an entry of an event below comes first."""
OF_EVENTS: dict[str, str] = {
    "agent:list after": FREE,  # positions
    "agent:spawn agent_id": f"{NEW}agent",
    "agent:spawn name": FREE,
    "agent:update name": FREE,
    "awareness:cards after": "page",
    "bill:query after": "page",
    "capability:create id": f"{NEW}capability",
    "capability:create name": FREE,
    "capability:get id": "capability",
    "capability:list after": "page",
    "capability:remove id": "capability",
    "capability:update id": "capability",
    "capability:update name": FREE,
    "composition:get name": "profile",
    "composition:list after": "page",
    "composition:migrate name": "profile",
    "conversation:active after": "page",
    "conversation:create name": FREE,
    "discovery:describe id": "thing",
    "discovery:discover category": "category",
    "discovery:examples id": "thing",
    "discovery:feedback id": "thing",
    "discovery:forget id": "thing",
    "extension:list after": "page",
    "extension:load id": "extension",
    "extension:unload id": "extension",
    "file:list_directory after": "page",
    "key:add name": f"{NEW}key",
    "key:revoke name": "key",
    "key:revoke_token id": "token",
    "key:token name": "agent",
    "review:decide id": "review",
    "review:list after": "call",
    "session:list after": "page",
    "skill:list after": "page",
    "skill:list id": "skill",
    "skill:read id": "skill",
    "state:list after": "page",
    "awareness:read id": FREE,  # tests/features/cards
    "awareness:remove id": FREE,  # only whoever sees everything may
    "mission:end mission": FREE,  # its own missions alone
    "registry:health after": "page",
    "registry:mark id": "thing",
    "skill:register id": "thing",
    "skill:register capability": FREE,
    "skill:review id": "thing",
    "skill:update id": "thing",
    "skill:update capability": FREE,
    "tool:list capability": "thing",
    "tool:list after": "page",
    "tool:register id": "thing",
    "tool:register capability": FREE,
    "tool:resolve capability": "thing",
    "upstream:check name": "upstream",
    "upstream:list after": "page",
    "upstream:list name": "upstream",
    "upstream:refresh name": "upstream",
}
SEEN: dict[str, Any] = {
    "agent": "probe-kid", "profile": "minimal", "capability": "state_read", "event": "state:get",
    "session": "probe-session", "thing": "tool:state:get", "skill": "open-skill", "key": "probe",
    "channel": "news", "pattern": "state:get", "tool": "state:get",
}  # fmt: skip
"""A name of each kind that the probe may see, where a request needs one beside."""
OWN = {"capability:update": "probe_made", "capability:remove": "probe_made"}
REQUIRED: dict[str, Any] = {
    "decision": "approve", "worked": True, "query": "look at things", "message": "hello",
    "data": 1, "description": "Made by a test", "files": [], "messages": [], "useful": True,
    "on": True, "path": "/x", "content": "x", "pattern": "x", "key": "x", "value": 1,
}  # fmt: skip


SUBSCRIBING = {
    "event:subscribe": "event:unsubscribe",
    "message:subscribe": "message:unsubscribe",
}


class Field(NamedTuple):
    """A field that takes text, and what stands for the names in it."""

    event: str
    path: str
    kind: str | None


def texts_in(schema: Any, defs: Any, path: str = "") -> Iterator[str]:
    """The paths of all that takes text of any kind, keys of objects included."""
    if "$ref" in schema:
        yield from texts_in(defs[schema["$ref"].rsplit("/", 1)[1]], defs, path)
        return
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from texts_in(one, defs, path)
    types = schema.get(
        "type", "string" if not {"anyOf", "oneOf", "enum", "const"} & {*schema} else ()
    )
    if "object" in types:
        yield from _texts_in_object(schema, defs, path)
    if "array" in types:
        yield from texts_in(schema.get("items", {}), defs, f"{path}[]")
    if "string" in types and "enum" not in schema:
        yield path


def _texts_in_object(schema: Any, defs: Any, path: str) -> Iterator[str]:
    for name, one in schema.get("properties", {}).items():
        yield from texts_in(one, defs, f"{path}.{name}" if path else name)
    if "properties" not in schema:
        yield f"{path}{{}}"
        values = schema.get("additionalProperties", {})
        yield from texts_in(values if isinstance(values, dict) else {}, defs, f"{path}{{}}=")


def fields() -> list[Field]:
    found = []
    for event, handler in sorted(built_in_handlers().items()):
        if not handler.spec.pushed:
            schema = handler.input_schema
            for path in dict.fromkeys(texts_in(schema, schema.get("$defs", {}))):
                kind = OF_EVENTS.get(f"{event} {path}", KINDS.get(path))
                found.append(Field(event, path, kind))
    return found


NAMES = [field for field in fields() if field.kind not in (None, FREE)]


def test_every_field_that_takes_text_is_classified_and_no_other() -> None:
    found = fields()
    assert [field for field in found if field.kind is None] == []
    known = {field.path for field in found} | {f"{field.event} {field.path}" for field in found}
    assert sorted({*KINDS, *OF_EVENTS} - known) == []


@pytest.fixture(scope="module")
def world() -> Iterator[Hidden]:
    with hidden_world() as found:
        yield found


def test_nothing_is_left_out(world: Hidden) -> None:
    kinds = {str(field.kind).removeprefix(NEW) for field in NAMES}
    assert kinds - {"profile text"} <= world.names.keys()
    held = {one["event"] for one in world.probe.call("permission:check_many", {
        "events": sorted(built_in_handlers())})["results"] if one["allowed"]}  # fmt: skip
    assert {field.event for field in NAMES} <= held


@pytest.mark.parametrize("field", NAMES, ids=lambda one: f"{one.event}-{one.path}")
def test_a_hidden_name_is_answered_as_one_that_does_not_exist(world: Hidden, field: Field) -> None:
    kind = str(field.kind).removeprefix(NEW)
    names = world.names["profile" if kind == "profile text" else kind]
    for name in names:
        answers = []
        for one in (name, twin(name)):
            answer = told(world.probe, field.event, request(field, one))
            _tidy(world, field.event, answer)
            text = shown(answer, name, twin(name))
            answers.append(without_suffix(text, ["NAME"]) if NEW in str(field.kind) else text)
        assert answers[0] == answers[1], name


def test_the_same_names_mean_something_to_the_operator(world: Hidden) -> None:
    """Or else nothing would be tried here."""
    with world.daemon.operator() as operator:
        for event, data in (
            ("agent:status", {"agent_id": "hush-agent"}),
            ("composition:get", {"name": "hush_profile"}),
            ("capability:get", {"id": "hush_made"}),
            ("capability:get", {"id": "hush_alias"}),
            ("session:narrow", {"session": "hush-session", "owner": "hush-key",
                                "disallowed_tools": ["state:set"]}),
            ("discovery:describe", {"id": "skill:hush-skill"}),
            ("skill:read", {"id": "hush-skill"}),
            ("upstream:list", {"name": "hush"}),
        ):  # fmt: skip
            operator.call(event, data)
        items = operator.call("review:list")["items"]
        assert {*world.names["review"][:3]} <= {item["id"] for item in items}


def request(field: Field, name: str) -> Any:
    """Valid data of an event, with a name in one field."""
    handler = built_in_handlers()[field.event]
    schema = handler.input_schema
    data: dict[str, Any] = {}
    for required in schema.get("required", ()):
        data[required] = _sample(field.event, required, schema["properties"][required])
    if field.event == "agent:spawn":  # else it is given a name by chance
        data["agent_id"] = "probe-new"
    _put(data, field, name)
    return data


def _sample(event: str, name: str, schema: Any) -> Any:
    if name == "public_key":
        return new_key("x").public_key
    kind = OF_EVENTS.get(f"{event} {name}", KINDS.get(name, KINDS.get(f"{name}[]", FREE)))
    if event in OWN and name == "id":
        return OWN[event]
    if kind.startswith(NEW):
        return "probe-new" if "agent" in kind or "key" in kind else "probe_new"
    value = SEEN.get(kind, REQUIRED.get(name, "x"))
    return [value] if schema.get("type") == "array" and name not in REQUIRED else value


def _put(data: dict[str, Any], field: Field, name: str) -> None:
    top, path = field.path, field.path
    for mark in (".", "[", "{"):
        top = top.partition(mark)[0]
    rest = path[len(top) :]
    if field.kind == "profile text":
        data[top] = {"probe.yaml": f"name: {name}\nextends: minimal\n"}
    elif rest == "":
        data[top] = name
    elif rest == "[]":
        data[top] = [name]
    elif rest == "{}":
        data[top] = {name: "name: probe_draft\n" if top == "compositions" else True}
    elif rest == "[].ref":
        data[top] = [{"ref": name}]
    else:
        raise AssertionError(f"say how to put a name into {path}")


def _tidy(world: Hidden, event: str, answer: Any) -> None:
    """Take back what was made, so that the next question finds everything as this one did."""
    undo = {
        "agent:spawn": ("agent:terminate", "agent_id", "agent_id"),
        "capability:create": ("capability:remove", "id", "id"),
        "key:add": ("key:revoke", "name", "name"),
        "session:open": ("session:close", "session", "session"),
    }
    made = answer.get("ok")
    if made is not None and event in SUBSCRIBING:
        world.probe.call(SUBSCRIBING[event], made)
    if made is not None and event in undo:
        name, field, value = undo[event]
        world.probe.call(name, {field: made[value]})
