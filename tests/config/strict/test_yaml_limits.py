"""Huge, deep and oddly encoded files: refused quickly, with a place, without a crash."""

import pytest

from remit.config.strict.yaml import MAX_BYTES, MAX_DEPTH, MAX_NODES, parse_yaml, read_text
from remit.errors import Problem


def refusal(raw: bytes) -> Problem:
    node, problems = parse_yaml(raw, "f.yaml")
    assert node is None
    (problem,) = problems
    return problem


def told(problem: Problem) -> str:
    return f"{problem.place} {problem.code}"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"[" * 10_000, "f.yaml:1:41 too_deep", id="flow-list"),
        pytest.param(b"[" * 10_000 + b"]" * 10_000, "f.yaml:1:41 too_deep", id="closed-flow-list"),
        pytest.param(b"{a: " * 10_000, "f.yaml:1:161 too_deep", id="flow-mapping"),
        pytest.param(b"- " * 10_000 + b"x", "f.yaml:1:81 too_deep", id="block-list"),
        pytest.param(
            b"".join(b" " * at + b"a:\n" for at in range(1_000)),
            "f.yaml:41:41 too_deep",
            id="block",
        ),
        pytest.param(b"? " * 10_000, "f.yaml:1:3 complex_key", id="keys-of-keys"),
    ],
)
def test_what_is_10_000_deep_is_refused(raw: bytes, expected: str) -> None:
    assert told(refusal(raw)) == expected


def test_the_deepest_nesting_has_40_levels() -> None:
    assert parse_yaml(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "f")[1] == []
    assert told(refusal(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))) == "f.yaml:1:41 too_deep"


def test_a_file_of_10_megabytes_is_refused() -> None:
    assert told(refusal(b"a: b\n" * 2_000_000)) == "f.yaml:1:1 too_large"


def test_a_file_of_a_megabyte_is_read() -> None:
    assert parse_yaml(b"# " + b"x" * (MAX_BYTES - 2), "f") == (None, [])
    assert told(refusal(b"# " + b"x" * (MAX_BYTES - 1))) == "f.yaml:1:1 too_large"


def test_100_000_nodes_are_refused() -> None:
    problem = refusal(b"[" + b"a," * 100_000 + b"]")
    assert problem.code == "too_large"
    assert f"{MAX_NODES:,}" in problem.message


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"a: b\nc: d\0e", "f.yaml:2:5 control_character", id="nul"),
        pytest.param(b"a: \x1b[31m", "f.yaml:1:4 control_character", id="escape"),
        pytest.param("a: é\nb: \x9b".encode(), "f.yaml:2:4 control_character", id="c1-control"),
        pytest.param("a: x\r\nb: ü\r\n".encode("latin-1"), "f.yaml:2:4 not_utf8", id="latin-1"),
        pytest.param(b"a: \xff", "f.yaml:1:4 not_utf8", id="no-utf-8"),
        pytest.param(b"\xef\xbb\xbfa: \xff", "f.yaml:1:4 not_utf8", id="after-a-byte-order-mark"),
        pytest.param("ä: ü ".encode() + b"\xe4", "f.yaml:1:6 not_utf8", id="after-wide-characters"),
        pytest.param("a: b".encode("utf-16"), "f.yaml:1:1 not_utf8", id="utf-16"),
        pytest.param(b"a: \xed\xa0\x80", "f.yaml:1:4 not_utf8", id="a-lone-surrogate"),
    ],
)
def test_an_odd_character_is_refused_at_its_place(raw: bytes, expected: str) -> None:
    assert told(refusal(raw)) == expected


def test_the_offending_byte_is_named() -> None:
    assert "0xfc" in refusal("a: ü".encode("latin-1")).message


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbfa: b\n", b"a: b\r\n", b"a: b\r", b"a: b"])
def test_byte_order_marks_and_all_line_ends_are_fine(raw: bytes) -> None:
    node, problems = parse_yaml(raw, "f.yaml")
    assert problems == []
    assert node is not None
    assert str(node.place) == "f.yaml:1:1"


def test_plain_text_is_read_under_the_same_rules() -> None:
    assert read_text("Hällo\r\n".encode(), "f") == ("Hällo\r\n", [])
    for raw in (b"\xff", b"a\0b", b"x" * (MAX_BYTES + 1)):
        text, problems = read_text(raw, "f")
        assert text == ""
        assert len(problems) == 1
