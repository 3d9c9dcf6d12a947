"""Which values can travel in both formats of the wire, and where one is that cannot."""

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit_client.values import DEEPEST, HIGHEST, LOWEST, misfit

TEXTS = st.text(max_size=5)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(LOWEST, HIGHEST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(TEXTS, inside, max_size=4),
    max_leaves=20,
)
ODD = st.one_of(
    st.sampled_from([HIGHEST + 1, LOWEST - 1, math.nan, math.inf, -math.inf, "a\ud800"]),
    st.binary(max_size=3),
    st.just(msgspec.msgpack.Ext(1, b"")),
    st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    st.sampled_from([{1: 2}, {b"a": 1}, {None: 1}, {"\udfff": 1}]),
)


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@given(PLAIN)
def test_a_plain_value_is_the_same_behind_every_format(value: Any) -> None:
    assert misfit(value) is None
    json, msgpack = msgspec.json, msgspec.msgpack
    assert msgpack.decode(msgpack.encode(json.decode(json.encode(value)))) == value
    assert json.decode(json.encode(msgpack.decode(msgpack.encode(value)))) == value


@given(PLAIN, ODD, PLAIN)
def test_an_odd_part_is_found_wherever_it_lies(before: Any, odd: Any, after: Any) -> None:
    found = misfit({"a": [before, {"b": odd}], "c": after})
    assert found is not None
    assert found.path == "$.a[1].b"
    assert found.problem


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (HIGHEST + 1, "$"),
        ({"a b": {"c": math.nan}}, '$["a b"].c'),
        ([1, [2, b""]], "$[1][1]"),
        ({"a": 1, "\ud800": 2}, "$"),
        (nested(DEEPEST + 1), "$" + "[0]" * DEEPEST),
        (object(), "$"),
    ],
)
def test_the_path_is_that_of_the_first_odd_part(value: Any, path: str) -> None:
    found = misfit(value)
    assert found is not None
    assert found.path == path


@pytest.mark.parametrize(
    "value", [(1, 2), {"a": {"b"}}, frozenset({1}), nested(DEEPEST), HIGHEST, LOWEST, -0.0]
)
def test_what_stands_for_a_plain_value_is_fine(value: Any) -> None:
    assert misfit(value) is None
