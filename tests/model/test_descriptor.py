"""What is read of the JSON Schema of a tool: fields of any shape, and never an error."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.model.descriptor import (
    CALL_TOOL,
    DESCRIPTOR_KINDS,
    META_TOOL,
    Descriptor,
    Parameter,
    call_tool,
    meta_tool,
    parameters_of,
    tool_id,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
SCHEMAS = st.fixed_dictionaries({}, optional={"properties": JSON, "required": JSON, "type": JSON})


def test_a_field_has_its_type_its_text_and_whether_it_is_needed() -> None:
    schema = {
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "days": {"type": ["integer", "null"]},
            "raw": {},
        },
        "required": ["city"],
    }
    assert parameters_of(schema) == (
        Parameter("city", "string", "Where", required=True),
        Parameter("days", "integer | null"),
        Parameter("raw"),
    )


@pytest.mark.parametrize("schema", [None, {}, {"properties": []}, {"properties": None}])
def test_a_schema_without_fields_has_none(schema: Any) -> None:
    assert parameters_of(schema) == ()


@pytest.mark.parametrize("required", [None, "city", {"city": 1}, [1, None, ["city"]]])
def test_a_list_of_needed_fields_that_is_none_needs_nothing(required: Any) -> None:
    schema = {"properties": {"city": {"type": "string"}}, "required": required}
    assert parameters_of(schema) == (Parameter("city", "string"),)


@given(SCHEMAS)
def test_whatever_a_server_sends_gives_texts_and_fails_nobody(schema: dict[str, Any]) -> None:
    for one in parameters_of(schema):
        assert isinstance(one.name, str)
        assert isinstance(one.type, str)
        assert isinstance(one.description, str)
        assert one.name in schema["properties"]


def test_a_schema_with_thousands_of_fields_is_cut() -> None:
    schema: dict[str, Any] = {"properties": {f"f{number}": {} for number in range(5_000)}}
    found = parameters_of(schema)
    assert len(found) == 256
    assert found[-1].name == "f255"


@pytest.mark.parametrize("event", ["state:get", "mcp:web:fetch"])
def test_the_id_of_a_tool_is_made_once(event: str) -> None:
    assert tool_id(event) == f"tool:{event}"
    assert tool_id(tool_id(event)) == tool_id(event)


def test_people_see_the_display_name_and_else_the_name() -> None:
    plain = Descriptor(id="tool:a:b", kind="tool", name="a_b")
    assert plain.title == "a_b"
    assert Descriptor(id="x", kind="tool", name="a_b", display_name="Ab").title == "Ab"


def test_the_two_tools_name_each_other_and_every_kind() -> None:
    assert meta_tool()["input_schema"]["properties"]["kind"]["enum"] == list(DESCRIPTOR_KINDS)
    assert meta_tool()["name"] == META_TOOL
    assert META_TOOL in call_tool()["description"]
    assert call_tool()["name"] == CALL_TOOL


def test_the_definition_that_one_caller_changes_is_not_the_one_of_the_next() -> None:
    meta_tool()["input_schema"]["properties"].clear()
    assert meta_tool()["input_schema"]["properties"]
