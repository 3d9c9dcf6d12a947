"""What somebody probably meant, and what is too far away to be meant."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.model.suggest import did_you_mean, nearest


def test_the_nearest_word_is_suggested() -> None:
    assert did_you_mean("state_raed", ["state_write", "state_read"]) == "did you mean 'state_read'?"


def test_a_short_list_is_shown_whole_when_nothing_is_near() -> None:
    assert did_you_mean("qqq", ["b", "a"]) == "known: a, b"


def test_a_long_list_is_not_shown() -> None:
    assert did_you_mean("qqq", [f"word{n}" for n in range(13)]) == ""
    assert did_you_mean("qqq", []) == ""


def test_the_order_of_the_known_words_does_not_matter() -> None:
    words = ["agent:spawn1", "agent:spawn2", "agent:spawn3"]
    assert nearest("agent:spawn", words, count=2) == nearest("agent:spawn", words[::-1], count=2)


def test_gibberish_is_near_to_nothing() -> None:
    assert nearest("zzzzqqqq", ["agent:spawn", "state:get", "message:publish"], count=5) == []


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("state:gett", "state:get"),
        ("agents:spawn", "agent:spawn"),
        ("stats:get", "state:get"),
        ("Observer", "observer"),
        ("read_file", "file:read_file"),
        ("file:file_read", "file:read_file"),
        ("spwan", "spawn"),
    ],
)
def test_a_slip_is_near(word: str, known: str) -> None:
    assert (
        did_you_mean(word, [known, *(f"word{n}" for n in range(13))]) == f"did you mean '{known}'?"
    )


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("capability:frobnicate", "capability:create"),
        ("state:read", "state:get"),
        ("mcp:github:merge", "mcp:github:create_issue"),
        ("discovery:delete_all", "discovery:describe"),
    ],
)
def test_a_namespace_in_common_makes_nothing_near(word: str, known: str) -> None:
    assert nearest(word, [known]) == []


SEGMENTS = st.text("abcdefghij_", min_size=1, max_size=16)
NAMES = st.lists(SEGMENTS, min_size=1, max_size=3).map(":".join)


def letters_apart(one: str, other: str) -> int:
    """At least so many letters must be added, left out or changed: those that only one has."""
    missing, extra = Counter(one) - Counter(other), Counter(other) - Counter(one)
    return max(missing.total(), extra.total())


@given(NAMES, st.lists(NAMES, max_size=30))
def test_what_is_far_is_never_suggested(word: str, known: list[str]) -> None:
    for found in nearest(word, known, count=30):
        same_words = sorted(re.split("[:_]", word)) == sorted(re.split("[:_]", found))
        bound = max(len(word), len(found), 3) / 3
        assert found.endswith(f":{word}") or same_words or letters_apart(word, found) <= bound


@given(
    st.text("abcdefghij", min_size=4, max_size=16),
    st.lists(st.text("klmnopqrst", min_size=4, max_size=16), min_size=1, max_size=30),
)
def test_a_random_name_in_a_known_namespace_is_near_to_nothing(word: str, known: list[str]) -> None:
    assert nearest(f"namespace:{word}", [f"namespace:{one}" for one in known]) == []
