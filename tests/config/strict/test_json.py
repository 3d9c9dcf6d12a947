"""JSON is told in one way only, and every string of it is found where it stands."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.config.strict.json import (
    MAX_DEPTH,
    DoubledKeyError,
    StrictJsonError,
    json_strings,
    parse_json,
    raw_offset,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def strings_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in (key, *strings_of(one))]
    return [text for one in value for text in strings_of(one)] if isinstance(value, list) else []


def at_path(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(VALUES, st.fixed_dictionaries({"ensure_ascii": st.booleans(), "indent": st.just(1)}))
def test_json_that_is_told_in_one_way_is_taken_as_it_is(value: Any, form: dict[str, Any]) -> None:
    assert parse_json(json.dumps(value, **form)) == value


@pytest.mark.parametrize(
    ("text", "path", "key"),
    [
        ('{"a": 1, "a": 2}', "$", "a"),
        ('{"a": [1, {"b": {}, "c": 2, "b": 3}]}', "$.a[1]", "b"),
        ('{"a": {"x": 1, "x": 2}, "b": 0, "a": 3}', "$", "a"),
    ],
)
def test_a_key_that_stands_twice_is_told_with_its_outermost_object(
    text: str, path: str, key: str
) -> None:
    with pytest.raises(DoubledKeyError) as caught:
        parse_json(text)
    assert (caught.value.path, caught.value.key) == (path, key)


@pytest.mark.parametrize(
    "text", ["[NaN]", "[-Infinity]", '{"\\ud800": 1}', "[" * 100_000, "[1", "", "9" * 5_000]
)
def test_what_readers_understand_differently_or_not_at_all_is_refused(text: str) -> None:
    with pytest.raises(StrictJsonError):
        parse_json(text)


def test_a_mistake_is_told_with_its_place() -> None:
    with pytest.raises(StrictJsonError) as caught:
        parse_json('{\n  "a" 1}')
    assert (caught.value.line, caught.value.column) == (2, 7)


@given(VALUES, st.fixed_dictionaries({"ensure_ascii": st.booleans(), "indent": st.just(1)}))
def test_every_string_is_found_with_its_path_and_place(value: Any, form: dict[str, Any]) -> None:
    text = json.dumps(value, **form)
    found = json_strings(text)
    assert [one.value for one in found] == strings_of(value)
    for one in found:
        assert text[one.start - 1] == '"'
        assert text[one.start : one.start + len(one.raw)] == one.raw
        assert at_path(value, one.path) == one.value or one.is_key


@given(TEXTS)
def test_the_place_of_a_character_is_found_behind_escapes(text: str) -> None:
    raw = json.dumps(text)[1:-1]
    for at, char in enumerate(text):
        start, end = raw_offset(raw, at), raw_offset(raw, at + 1)
        assert json.loads(f'"{raw[start:end]}"') == char


def test_both_of_two_equal_keys_are_read() -> None:
    found = json_strings('{"a": "first", "a": "second"}')
    assert [one.value for one in found if not one.is_key] == ["first", "second"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{'a': 1}", id="other-quotes"),
        pytest.param('{"a": "b"', id="cut-off"),
        pytest.param('"\\ud800"', id="half-a-character"),
        pytest.param("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), id="too-deep"),
        pytest.param("[" * 100_000, id="far-too-deep"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_no_sane_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_strings(text)
