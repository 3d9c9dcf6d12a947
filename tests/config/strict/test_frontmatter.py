"""Markdown with keys before it: what is read, and where each mistake is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.config.strict.frontmatter import (
    MAX_FRONTMATTER,
    MAX_MARKDOWN,
    read_markdown,
    split_frontmatter,
)
from remit.config.strict.yaml import to_json
from remit.errors import Problem


def problem_of(raw: bytes) -> Problem:
    _markdown, problems = read_markdown(raw, "a.md", required=True)
    (problem,) = problems
    return problem


def spot(problem: Problem) -> tuple[str, int, int]:
    return (problem.code, problem.place.line, problem.place.column)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"---\nname: x\n---\nbody\n", id="plain"),
        pytest.param(b"\xef\xbb\xbf---\nname: x\n---\nbody\n", id="byte-order-mark"),
        pytest.param(b"---\r\nname: x\r\n---\r\nbody\n", id="crlf"),
        pytest.param(b"---\rname: x\r---\rbody\n", id="cr"),
        pytest.param(b"---  \nname: x\n---\t\nbody\n", id="blanks-after-the-dashes"),
    ],
)
def test_keys_and_text_are_told_apart(raw: bytes) -> None:
    markdown, problems = read_markdown(raw, "a.md", required=True)
    assert not problems
    assert markdown.keys is not None
    assert to_json(markdown.keys) == {"name": "x"}
    assert markdown.body == "body\n"


def test_the_frontmatter_ends_at_the_first_line_of_dashes() -> None:
    text = "---\na: x --- y\nb: |\n  ---\n---\nbody\n---\nmore"
    assert split_frontmatter(text) == ("a: x --- y\nb: |\n  ---\n", "body\n---\nmore")


def test_an_empty_frontmatter_has_no_keys_and_is_no_mistake() -> None:
    markdown, problems = read_markdown(b"---\n---\nbody", "a.md", required=True)
    assert (markdown.keys, markdown.body, problems) == (None, "body", [])


def test_a_text_without_frontmatter_is_one_where_none_is_required() -> None:
    for raw in (b"body", b"---\nnothing ends this"):
        markdown, problems = read_markdown(raw, "a.md", required=False)
        assert (markdown.keys, markdown.body, problems) == (None, raw.decode(), [])


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"", ("empty_file", 1, 1), id="empty"),
        pytest.param(b"# Title\n", ("no_frontmatter", 1, 1), id="none"),
        pytest.param(b"\n---\na: 1\n---\n", ("no_frontmatter", 1, 1), id="not-at-the-top"),
        pytest.param(b"---\nname: x\nbody\n", ("no_frontmatter", 1, 1), id="without-end"),
        pytest.param(b"---\nname: x\n ---\n", ("no_frontmatter", 1, 1), id="indented-end"),
        pytest.param(b"----\nname: x\n---\n", ("no_frontmatter", 1, 1), id="four-dashes"),
        pytest.param(b"---\na: 1\nb: x: y\n---\n", ("yaml_syntax", 3, 5), id="colon"),
        pytest.param(b"---\na:\n\tb: 1\n---\n", ("yaml_syntax", 3, 1), id="tab"),
        pytest.param(b"---\na: [1,\n---\n", ("yaml_syntax", 2, 6), id="open-list"),
        pytest.param(b"---\na: 1\na: 2\n---\n", ("duplicate_key", 3, 1), id="twice"),
        pytest.param(b"---\na: &x 1\n---\n", ("alias", 2, 4), id="anchor"),
        pytest.param(b"---\na: !!python/name:os 1\n---\n", ("tag", 2, 4), id="tag"),
        pytest.param(b"---\n- a\n---\n", ("wrong_type", 2, 1), id="a-list"),
        pytest.param(b"---\na: caf\xe9\n---\n", ("not_utf8", 2, 7), id="latin-1"),
        pytest.param(b"---\na: 1\n---\nbody \xff", ("not_utf8", 4, 6), id="bad-body"),
        pytest.param(b"---\na: \x00\n---\n", ("control_character", 2, 4), id="nul"),
        pytest.param(b"\xff\xfe-\x00-\x00-\x00", ("not_utf8", 1, 1), id="utf-16"),
    ],
)
def test_a_mistake_is_shown_where_it_stands(raw: bytes, expected: tuple[str, int, int]) -> None:
    assert spot(problem_of(raw)) == expected


def test_what_hands_get_wrong_most_comes_with_its_repair() -> None:
    assert "quotes" in problem_of(b"---\nb: x: y\n---\n").hint
    assert "blanks" in problem_of(b"---\na:\n\tb: 1\n---\n").hint


def test_files_are_bounded() -> None:
    inside = b"---\na: x\n---\n".ljust(MAX_MARKDOWN, b"x")
    assert read_markdown(inside, "a.md", required=True)[1] == []
    assert spot(problem_of(inside + b"x")) == ("too_large", 1, 1)
    keys = b"a: " + b"x" * MAX_FRONTMATTER
    assert spot(problem_of(b"---\n" + keys + b"\n---\n")) == ("too_large", 1, 1)


@given(st.binary(max_size=60) | st.text("-\r\n \t\u2028:ax[", max_size=30).map(str.encode))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    for start in (b"", b"---\n"):
        markdown, problems = read_markdown(start + raw, "a.md", required=True)
        assert problems or markdown.body in (start + raw).decode("utf-8-sig")
