"""What an event may be called, what a pattern of names covers, and which name was meant."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import InvalidNameError, InvalidPatternError
from remit.model.names import EventName, EventPattern, did_you_mean, nearest, parse_event_name


@pytest.mark.parametrize(
    "text", ["agent:spawn", "state:entity:get", "mcp:git-hub:create.issue", "a:0", "a_1:b_2"]
)
def test_lowercase_segments_joined_by_colons_are_a_name(text: str) -> None:
    assert parse_event_name(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "agent", "agent:", ":spawn", "agent::spawn", "agent:spawn:", "Agent:spawn"),
        *(
            "agent:Spawn",
            "agent:*",
            "agent:sp*",
            "*",
            " agent:spawn",
            "agent:spawn\n",
            "agent:spawn ",
        ),
        *(
            "1a:b",
            "_a:b",
            "a:_b",
            "a:-b",
            "a:.b",
            "a-b:c",
            "a.b:c",
            "agent:späwn",
            "agent:\u0455pawn",
        ),
        *("a:b/c", "a:b\0", "a:../b"),
    ],
)
def test_any_other_text_is_refused_with_itself(text: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        parse_event_name(text)
    assert caught.value.text == text
    assert "agent:spawn" in caught.value.hint


def test_the_longest_name_has_200_characters() -> None:
    assert parse_event_name("a:" + "b" * 198)
    with pytest.raises(InvalidNameError):
        parse_event_name("a:" + "b" * 199)


@given(st.text(alphabet="ab:_-.*A0 \n", max_size=12))
def test_every_name_is_a_pattern_that_covers_itself(text: str) -> None:
    try:
        name = parse_event_name(text)
    except InvalidNameError:
        return
    assert EventPattern.parse(name).covers(name)
    assert EventPattern.parse(name).exact


SEGMENTS = st.from_regex(r"[a-b][a-b_]{0,2}", fullmatch=True)
NAMES = st.lists(SEGMENTS, min_size=2, max_size=4).map(":".join).map(parse_event_name)
WILDCARDS = st.builds(
    lambda name, cut: name[: name.index(":") + 1 + cut] + "*", NAMES, st.integers(0, 4)
)
PATTERNS = st.one_of(NAMES, WILDCARDS, st.just("*"))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        pytest.param("agent:spawn", "agent:spawn", id="itself"),
        pytest.param("state:*", "state:get", id="a-namespace"),
        pytest.param("state:*", "state:entity:get", id="a-namespace-at-any-depth"),
        pytest.param("agent:send_*", "agent:send_message", id="a-stem"),
        pytest.param("state:entity:*", "state:entity:get", id="a-deeper-namespace"),
        pytest.param("*", "state:get", id="everything"),
    ],
)
def test_a_pattern_covers(pattern: str, name: str) -> None:
    assert EventPattern.parse(pattern).covers(parse_event_name(name))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        pytest.param("agent:*", "agents:spawn", id="not-a-longer-namespace"),
        pytest.param("agent:spawn", "agent:spawn_many", id="not-a-longer-name"),
        pytest.param("agent:spawn", "agent:spawn:many", id="not-a-deeper-name"),
        pytest.param("state:entity:*", "state:get", id="not-the-namespace-above"),
        pytest.param("state:*", "my:state:get", id="not-in-the-middle"),
    ],
)
def test_a_pattern_does_not_cover(pattern: str, name: str) -> None:
    assert not EventPattern.parse(pattern).covers(parse_event_name(name))


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "agent", "agent:", "a*b:c", "*:spawn", "agent:**", "Agent:x", "agent*", "a:*\n"),
        *(
            "agent:*:x",
            "agent:s*n",
            "a:*b",
            "**",
            "* ",
            " *",
            "a::*",
            ":*",
            "agent:?",
            "agent:[ab]",
        ),
        *("agent:spawn:", "agent:.*", "a:b*:c"),
    ],
)
def test_an_unreadable_pattern_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(InvalidPatternError) as caught:
        EventPattern.parse(text)
    assert caught.value.text == text


def test_the_longest_pattern_has_200_characters() -> None:
    assert not EventPattern.parse("a:" + "b" * 197 + "*").exact
    with pytest.raises(InvalidPatternError):
        EventPattern.parse("a:" + "b" * 198 + "*")


def test_only_the_bare_star_is_everything() -> None:
    assert EventPattern.parse("*").is_everything
    assert not EventPattern.parse("a:*").is_everything
    assert not EventPattern.parse("a:b").is_everything


@given(NAMES, NAMES)
def test_a_pattern_without_a_star_covers_one_name_only(
    pattern: EventName, other: EventName
) -> None:
    assert EventPattern.parse(pattern).covers(other) == (pattern == other)


@given(PATTERNS)
def test_a_pattern_reads_back_as_it_was_written(text: str) -> None:
    assert str(EventPattern.parse(text)) == text


@given(PATTERNS, PATTERNS, NAMES)
def test_an_overlap_covers_exactly_what_both_cover(one: str, other: str, name: EventName) -> None:
    first, second = EventPattern.parse(one), EventPattern.parse(other)
    shared = first.overlap(second)
    both = first.covers(name) and second.covers(name)
    assert both == (shared is not None and shared.covers(name))
    assert shared == second.overlap(first)


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


LIKE_SEGMENTS = st.text("abcdefghij_", min_size=1, max_size=16)
LIKE_NAMES = st.lists(LIKE_SEGMENTS, min_size=1, max_size=3).map(":".join)


def letters_apart(one: str, other: str) -> int:
    """At least so many letters must be added, left out or changed: those that only one has."""
    missing, extra = Counter(one) - Counter(other), Counter(other) - Counter(one)
    return max(missing.total(), extra.total())


@given(LIKE_NAMES, st.lists(LIKE_NAMES, max_size=30))
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
