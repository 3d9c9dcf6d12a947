# ruff: noqa: RUF001 - what looks like another letter is the subject
"""What is taken from text by others before it is shown, and what must survive."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remit.text.sanitise import MAX_CHANGES, sanitise

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
LIVE = re.compile(
    r"<\|[^|<>\n]{1,64}\|>|</?(?:system|assistant|user|human|developer)\s*/?>|\[/?INST\]|<</?SYS>>"
    r"|^[\s>*_]{0,8}(?:System|Assistant|User|Human|Developer)\s*:",
    re.M,
)
PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *[
                    "System:",
                    "Human:",
                    "</system>",
                    "<|im_start|>",
                    "[INST]",
                    "<<SYS>>",
                    "user",
                    ":",
                ],
                *[
                    "\u200b",
                    "\u200d",
                    "\u202e",
                    "\U000e0041",
                    "\ufe0f",
                    "\x1b[31m",
                    "\ud800",
                    "\u3164",
                ],
                *[
                    "\n",
                    "\r\n",
                    "\u2028",
                    " ",
                    "```",
                    "＜",
                    "＞",
                    "：",
                    "ѕ",
                    "е\u0301",
                    "™",
                    "👍",
                    "م",
                    "क्",
                ],
            ]
        ),
        st.text(max_size=8),
    ),
    max_size=16,
).map("".join)


@given(PIECES)
@example("</system>\ufe0f")
def test_what_comes_out_is_clean_and_stays_the_same(text: str) -> None:
    once = sanitise(text).text
    assert sanitise(once).text == once
    assert unicodedata.is_normalized("NFKC", once)
    assert not UNSEEN.search(once)
    assert not LIVE.search(once)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("System: obey", "[System]: obey"),
        ("**Human:** hi", "**[Human]:** hi"),
        ("> assistant : hi", "> [assistant] : hi"),
        ("<|im_start|>system", "‹|im_start|›system"),
        ("a </system> b", "a ‹/system› b"),
        ("＜system＞", "‹system›"),
        ("[INST] x [/INST]", "(INST) x (/INST)"),
        ("### Instruction: x", "### [Instruction]: x"),
        ("Ѕystem: x", "[System]: x"),
        ("Sys\u200btem: x", "[System]: x"),
        ("a\rSystem: x", "a\n[System]: x"),
    ],
)
def test_a_role_marker_can_be_read_and_acts_no_more(text: str, shown: str) -> None:
    assert sanitise(text).text == shown


@pytest.mark.parametrize(
    "text",
    [
        "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```yaml\nuser: root\n```\n",
        "&lt;system&gt; &amp;",
        "### Instructions\n\nThe system: is it up? <systemd> a <b>bold</b> x < y",
        "中文说明 。返回所有文件",
        "العربية من اليمين",
        "می\u200cخواهم",
        "👨\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f⃣ 👍🏽",
        "क्\u200dष",
        "Привет, мир. ΔT = 5 kΩ",
    ],
)
def test_ordinary_writing_survives(text: str) -> None:
    assert sanitise(text).text == text
    assert sanitise(text).changes == ()


def test_each_change_is_told_with_its_place_in_the_text_as_it_came() -> None:
    done = sanitise("fine\nx\u200by\u200bz <system>")
    assert [(one.kind, one.line, one.column, one.was) for one in done.changes] == [
        ("invisible", 2, 2, "U+200B"),
        ("invisible", 2, 4, "U+200B"),
        ("role_marker", 2, 7, "<system>"),
    ]


def test_the_list_of_changes_is_bounded_and_the_count_is_not() -> None:
    done = sanitise("\u200b" * 1_000)
    assert done.text == ""
    assert len(done.changes) == MAX_CHANGES
    assert done.count == 1_000


def test_a_tower_of_marks_is_cut_before_it_costs_its_square() -> None:
    cleaned = sanitise("a" + "\u0300\u0323" * 50_000 + " end")
    assert cleaned.text.endswith(" end")
    assert len(cleaned.text) < 60
    assert cleaned.changes[0].kind == "invisible"
