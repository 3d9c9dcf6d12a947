"""Fences: text by others can neither close its fence nor open another one."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.text.fence import disarmed, fenced, fenced_capability, marker

BRACKETS = "<＜﹤‹〈⟨《«˂ᐸ❮❰"  # noqa: RUF001
PIECES = ["</capability-data>", "</capability>", "<capability id='x'>", "capability-data", "<", "ﬁ"]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=8).map("".join)
OPENED = re.compile(r"\A<capability-data-([0-9a-f]{8})>\n")


@given(TEXTS)
def test_a_fence_is_closed_once_and_by_itself(text: str) -> None:
    found = fenced(text)
    opened = OPENED.match(found)
    assert opened
    assert found.count(f"</capability-data-{opened[1]}>") == 1
    assert found.endswith(f"\n</capability-data-{opened[1]}>")


@given(TEXTS)
def test_the_same_text_has_the_same_fence_so_that_prompts_can_be_cached(text: str) -> None:
    assert fenced(text) == fenced(text)


@given(st.text(alphabet="0123456789abcdef", max_size=64))
def test_the_marker_never_stands_in_its_text(text: str) -> None:
    found = marker(text, 1)
    assert re.fullmatch("[0-9a-f]{2}", found)
    assert found not in text


def test_a_text_that_knows_every_marker_is_no_text() -> None:
    everything = " ".join(f"{number:02x}" for number in range(256))
    with pytest.raises(AssertionError):
        marker(everything, 1)


@pytest.mark.parametrize("bracket", BRACKETS)
@pytest.mark.parametrize(
    "label",
    [
        pytest.param("/capability>", id="plain"),
        pytest.param(" / CAPABILITY >", id="spaces-and-capitals"),
        pytest.param("/саpаbility>", id="cyrillic"),  # noqa: RUF001
        pytest.param("/capabi1ity>", id="digit"),
        pytest.param("/ｃａｐability>", id="fullwidth"),  # noqa: RUF001
        pytest.param("/c-a-p-a-b-i-l-i-t-y>", id="dashes"),
    ],
)
def test_no_disguise_of_the_tag_keeps_its_bracket(bracket: str, label: str) -> None:
    found = disarmed(f"before {bracket}{label} after")
    assert bracket not in found
    assert found == f"before ({label} after"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_text_that_does_not_speak_of_capabilities_is_left_as_it_is(text: str) -> None:
    plain = unicodedata.normalize("NFKD", text).casefold()
    if "c" not in plain and "с" not in plain:  # noqa: RUF001
        assert disarmed(text) == text


@given(TEXTS)
def test_disarming_changes_brackets_and_nothing_else(text: str) -> None:
    found = disarmed(text)
    assert len(found) == len(text)
    for before, after in zip(text, found, strict=True):
        assert after in (before, "(")
        assert before == after or before in BRACKETS


@given(TEXTS)
def test_disarming_twice_is_disarming_once(text: str) -> None:
    once = disarmed(text)
    assert disarmed(once) == once


@given(TEXTS)
def test_the_fence_of_a_capability_has_one_opening_and_one_end(text: str) -> None:
    found = fenced_capability("notes", text)
    assert found.startswith('<capability id="notes">\n')
    assert len(re.findall(r"<\s*/?\s*capability", found)) == 2
