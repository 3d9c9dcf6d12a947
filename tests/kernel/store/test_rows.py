"""What every table refuses of a value, and how a long list is cut into pages."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import InvalidDataError, TooLargeError
from remit.kernel.store.rows import (
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
    after_prefix,
    brief_text,
    check_json,
    check_limit,
    check_size,
    check_state_key,
    check_text,
    check_time,
    cut,
)

CHARACTERS = st.characters(exclude_categories=["Cs"])
EDGES = st.sampled_from(["a", "b", "\ud7ff", "\ue000", "\U0010ffff", "é"])
WORDS = st.text(EDGES, max_size=4)


@given(WORDS, WORDS)
def test_all_texts_with_a_prefix_lie_before_the_one_after_it(prefix: str, rest: str) -> None:
    behind = after_prefix(prefix)
    if behind is None:
        assert set(prefix) <= {"\U0010ffff"}
    else:
        assert prefix + rest < behind
        assert not behind.startswith(prefix)
        behind.encode()  # a database can be asked about it


@given(WORDS, WORDS)
def test_no_text_behind_the_prefix_lies_before_it(prefix: str, other: str) -> None:
    behind = after_prefix(prefix)
    if behind is not None and prefix <= other < behind:
        assert other.startswith(prefix)


@pytest.mark.parametrize("key", ["a", "é" * (MAX_KEY_BYTES // 2), "\U0010ffff"])
def test_a_key_of_up_to_1024_bytes_is_taken(key: str) -> None:
    check_state_key(key)


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800", "a" * 1025, "é" * 513])
def test_another_key_is_refused_with_its_place(key: str) -> None:
    with pytest.raises(InvalidDataError) as caught:
        check_state_key(key)
    assert caught.value.details == {"path": "$.key"}


@given(st.text(CHARACTERS))
def test_all_unicode_is_text(text: str) -> None:
    check_text(text, "$.x")


@given(st.text(CHARACTERS, max_size=3), st.integers(0xD800, 0xDFFF))
def test_a_lone_surrogate_is_refused_wherever_it_stands(text: str, code: int) -> None:
    for broken in (text + chr(code), chr(code) + text):
        with pytest.raises(InvalidDataError) as caught:
            check_text(broken, "$.x")
        caught.value.message.encode("ascii")


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_what_is_no_moment_is_no_time(seconds: float) -> None:
    with pytest.raises(InvalidDataError):
        check_time(seconds, "$.at")
    check_time(-1.5, "$.at")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"nul", b"[" * 100_000])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDataError):
        check_json(data, "$.payload")
    check_json(b'{"a": [1, null]}', "$.payload")


def test_a_value_may_have_16_mebibytes_and_no_byte_more() -> None:
    check_size(bytes(MAX_VALUE_BYTES), "$")
    with pytest.raises(TooLargeError) as caught:
        check_size(bytes(MAX_VALUE_BYTES + 1), "$")
    assert caught.value.details["size"] == MAX_VALUE_BYTES + 1


@pytest.mark.parametrize("limit", [0, -1, 2**31])
def test_a_page_that_nobody_can_count_is_refused(limit: int) -> None:
    with pytest.raises(InvalidDataError):
        check_limit(limit)
    check_limit(1)
    check_limit(2**31 - 1)


SIZES = st.lists(st.integers(0, 9), max_size=9)


@given(SIZES, st.integers(1, 9), st.integers(0, 30))
def test_a_page_is_the_longest_start_that_fits(sizes: list[int], limit: int, room: int) -> None:
    taken, more = cut(sizes, limit, room, lambda size: size)
    assert taken == sizes[: len(taken)]
    assert more == (len(taken) < len(sizes))
    assert len(taken) <= limit
    assert sum(taken) <= room or len(taken) == 1
    if more:
        following = sizes[: len(taken) + 1]
        assert len(following) > limit or sum(following) > room


@given(SIZES, st.integers(1, 9), st.integers(0, 30))
def test_pages_one_after_another_hold_everything(sizes: list[int], limit: int, room: int) -> None:
    left, seen = list(sizes), list[int]()
    while left:
        taken, _ = cut(left, limit, room, lambda size: size)
        assert taken, "a page is never empty, or nobody would come to an end"
        seen += taken
        left = left[len(taken) :]
    assert seen == sizes


@given(st.text())
def test_what_an_error_shows_is_one_short_line_of_ascii(text: str) -> None:
    shown = brief_text(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) <= 60 * len(r"\U0010ffff") + 2
