"""What an event pattern covers, and what it must never cover."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import InvalidPatternError
from remit.model.names import EventName, EventPattern, parse_event_name

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
