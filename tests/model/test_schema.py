"""Whether something is a JSON Schema, with and without the validator."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.model.schema import _is_plain, schema_mistakes

_VALUES = st.one_of(
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from(["object", "string", "text", ""]),
    st.lists(st.sampled_from(["a", "b", 1]), max_size=3),
    st.none(),
)
_KEYS = st.sampled_from(
    [
        *("type", "title", "description", "required", "additionalProperties", "uniqueItems"),
        *("minItems", "maxLength", "items", "properties", "$ref", "pattern", "enum"),
    ]
)
_SCHEMAS = st.recursive(
    st.dictionaries(_KEYS, _VALUES, max_size=3),
    lambda inner: st.dictionaries(
        _KEYS, st.one_of(_VALUES, inner, st.dictionaries(st.text(max_size=3), inner, max_size=2))
    ),
    max_leaves=6,
)


@given(_SCHEMAS)
def test_what_looks_plain_is_a_schema(schema: dict[str, Any]) -> None:
    if _is_plain(schema):
        jsonschema_rs.Draft202012Validator(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"required": ["a", "a"]},
        {"required": [1]},
        {"minItems": -1},
        {"minItems": True},
        {"properties": {"a": {"type": 3}}},
        {"items": {"type": "array", "items": []}},
    ],
)
def test_what_is_no_schema_is_told(schema: dict[str, Any]) -> None:
    assert schema_mistakes(schema)


def test_the_commonest_keys_need_no_validator() -> None:
    hosts = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "additionalProperties": False, "properties": {"hosts": hosts}}
    assert _is_plain(schema)
    assert schema_mistakes(schema) == ()
