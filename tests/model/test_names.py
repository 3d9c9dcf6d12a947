"""What an event may be called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import InvalidNameError
from remit.model.names import EventPattern, parse_event_name


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
