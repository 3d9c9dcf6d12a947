"""Every text that an event takes has a length, and a name ends where its pattern does.

The events are asked for their schemas, so one that is added is held to this too.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes import Desk, built_in_handlers, starter_files

from remit.model.schema import NAME_LIMIT

HANDLERS = {
    name: handler for name, handler in built_in_handlers().items() if not handler.spec.pushed
}
LONGEST_NAME = 1024
LONG = "a" * 1_000_000
TEXTS = {
    "agent:runtime $.messages[].content",
    "agent:runtime $.messages[]",
    "agent:runtime $.query",
    "agent:spawn $.launch.values{}",
    "agent:spawn $.system_prompt",
    "agent:spawn $.variables{}",
    "agent:update $.system_prompt",
    "agent:update $.variables{}",
    "awareness:inject $.messages[]",
    "awareness:put $.card",
    "awareness:inject $.messages[].content",
    "awareness:select $.messages[]",
    "awareness:select $.messages[].content",
    "capability:create $.description",
    "capability:create $.mounts[].content",
    "capability:create $.system_prompt",
    "capability:update $.description",
    "capability:update $.mounts[].content",
    "capability:update $.system_prompt",
    "composition:plan $.catalogue",
    "composition:plan $.compositions{}",
    "composition:resolve $.variables{}",
    "composition:validate $.catalogue",
    "composition:validate $.compositions{}",
    "discovery:discover $.query",
    "discovery:feedback $.query",
    "discovery:forget $.query",
    "discovery:tools $.query",
    "file:write_file $.content",
    "registry:search $.query",
    "skill:register $.description",
    "skill:update $.description",
    "tool:register $.description",
    "web:web_fetch $.url",
}
"""What is read and not called by: texts that may be longer than any name."""


class Field:
    """A text somewhere in a request."""

    def __init__(self, event: str, path: str, schema: dict[str, Any]) -> None:
        self.event = event
        self.path = path
        self.schema = schema

    def __str__(self) -> str:
        return f"{self.event} {self.path}"

    def request(self, text: str) -> Any:
        """A request with `text` in this place, and nothing else that has to be there."""
        value: Any = text
        for part in reversed(self.path.removeprefix("$").replace("[]", ".[]").split(".")):
            if part == "[]":
                value = [value]
            elif part.endswith("{}"):
                value = {part[:-2]: {"a": value}}
            elif part.endswith("{key}"):
                value = {part[:-5]: {value: 1}}
            elif part:
                value = {part: value}
        return value


def fields(event: str, schema: dict[str, Any], path: str, inside: Any) -> Iterator[Field]:
    if "$ref" in schema:
        schema = inside[schema["$ref"].rsplit("/", 1)[1]]
    for way in schema.get("anyOf", ()):
        yield from fields(event, way, path, inside)
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        yield Field(event, path, schema)
    for name, one in schema.get("properties", {}).items():
        yield from fields(event, one, f"{path}.{name}", inside)
    if isinstance(schema.get("items"), dict):
        yield from fields(event, schema["items"], f"{path}[]", inside)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from fields(event, schema["additionalProperties"], f"{path}{{}}", inside)
        names = {"type": "string", **schema.get("propertyNames", {})}
        if schema["additionalProperties"]:  # an object of any shape is data
            yield Field(event, f"{path}{{key}}", names)


FIELDS = [
    field
    for name, handler in sorted(HANDLERS.items())
    for field in fields(name, handler.input_schema, "$", handler.input_schema.get("$defs", {}))
]
NAMES = [field for field in FIELDS if str(field) not in TEXTS]
PATTERNED = [field for field in FIELDS if "pattern" in field.schema]


@pytest.fixture
def desk() -> Desk:
    return Desk(HANDLERS, starter_files())


def test_every_list_of_long_texts_is_about_something() -> None:
    assert {*map(str, FIELDS)} >= TEXTS


def test_every_text_has_a_length() -> None:
    assert [str(one) for one in FIELDS if "maxLength" not in one.schema] == []


def test_a_name_has_a_length_of_a_name() -> None:
    assert [str(one) for one in NAMES if one.schema["maxLength"] > LONGEST_NAME] == []


async def test_a_name_of_a_megabyte_is_refused_in_a_few_words(desk: Desk) -> None:
    for field in NAMES:
        answer = await desk.answer("operator", field.event, field.request(LONG))
        assert answer.error is not None, str(field)
        assert answer.error.code == "invalid_data", str(field)
        assert len(str(answer.error)) < LONGEST_NAME, str(field)


@pytest.mark.parametrize("text", ["a\n", "a" * 64 + "\n", "\na", "a\nb"])
async def test_a_name_with_a_newline_is_refused(desk: Desk, text: str) -> None:
    for field in PATTERNED:
        answer = await desk.answer("operator", field.event, field.request(text))
        assert answer.error is not None, str(field)
        assert answer.error.code == "invalid_data", (str(field), answer.error)


def test_a_schema_says_it_in_the_words_of_schemas() -> None:
    assert PATTERNED
    for field in PATTERNED:
        assert field.schema["pattern"].startswith("^(")
        assert field.schema["pattern"].endswith(")$")


async def test_a_name_of_the_longest_length_is_answered_about(desk: Desk) -> None:
    name = "a:" + "b" * (NAME_LIMIT - 2)
    found = await desk.ask("operator", "permission:check", {"event": name})
    assert found.event == name
    refused = await desk.answer("operator", "permission:check", {"event": f"{name}b"})
    assert refused.error is not None
    assert refused.error.details == {"path": "$.event"}
