"""A strict reading of YAML: nothing surprising is understood, everything has its place."""

import pytest

from remit.config.strict.yaml import JsonScalar, Mapping, Scalar, Sequence, parse_yaml, to_json
from remit.errors import Problem


def refusal(text: str | bytes) -> Problem:
    """The one problem of a text that cannot be read."""
    node, problems = parse_yaml(text if isinstance(text, bytes) else text.encode(), "f.yaml")
    assert node is None
    (problem,) = problems
    return problem


def told(problem: Problem) -> str:
    return f"{problem.place} {problem.code}"


def value_of(text: str) -> object:
    node, problems = parse_yaml(text.encode(), "f.yaml")
    assert problems == []
    assert node is not None
    return to_json(node)


def test_every_node_keeps_its_place() -> None:
    node, _ = parse_yaml(b"a:\n  - x\n  - {b: y}\n", "f.yaml")
    assert isinstance(node, Mapping)
    key, items = node.pairs[0]
    assert isinstance(items, Sequence)
    inner = items.items[1]
    assert isinstance(inner, Mapping)
    places = [key.place, items.place, items.items[0].place, inner.place, inner.pairs[0][1].place]
    assert [str(p) for p in places] == [
        *("f.yaml:1:1", "f.yaml:2:3", "f.yaml:2:5", "f.yaml:3:5", "f.yaml:3:9"),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("true", True), ("false", False), ("null", None), ("~", None)),
        *(("0", 0), ("12", 12), ("-7", -7), ("0.5", 0.5), ("-1.5e3", -1500.0)),
    ],
)
def test_true_false_null_and_plain_decimal_numbers_are_understood(
    text: str, value: JsonScalar
) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("no", "No", "NO", "yes", "on", "off", "y", "n", "True", "TRUE", "False", "Null", "NULL"),
        *(
            "010",
            "0x10",
            "0o10",
            "0b1",
            "1_000",
            "12:30:45",
            "1:2",
            "+5",
            "1.",
            ".5",
            "1e5",
            ".inf",
        ),
        *(".nan", "2024-01-01", "2024-01-01T00:00:00Z", "=", "1" * 30, "--1", "0.5.5"),
    ],
)
def test_everything_else_stays_text(text: str) -> None:
    assert value_of(text) == text


@pytest.mark.parametrize("text", ['"true"', "'5'", '"null"', "|-\n  true", ">-\n  5"])
def test_what_is_quoted_is_text(text: str) -> None:
    assert isinstance(value_of(text), str)


def test_a_duplicate_key_is_told_with_both_places() -> None:
    _, problems = parse_yaml(b"a: 1\nb: 2\na: 3\nb: 4\n", "f.yaml")
    assert [told(p) for p in problems] == ["f.yaml:3:1 duplicate_key", "f.yaml:4:1 duplicate_key"]
    assert "first at line 1" in problems[0].message


def test_a_duplicate_key_is_found_at_any_depth_and_in_any_spelling() -> None:
    _, problems = parse_yaml(b"x: [{a: 1, 'a': 2}]", "f.yaml")
    assert [told(p) for p in problems] == ["f.yaml:1:12 duplicate_key"]


def test_equal_keys_in_different_mappings_are_fine() -> None:
    assert value_of("[{a: 1}, {a: 2}]") == [{"a": 1}, {"a": 2}]


MERGE_BOMB = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [*{before}, *{before}]}}\n"
    for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: &x 1\nb: *x", "f.yaml:1:4 alias", id="anchor"),
        pytest.param("a: *x", "f.yaml:1:4 alias", id="alias"),
        pytest.param("a: &x [1]", "f.yaml:1:4 alias", id="anchor-of-a-list"),
        pytest.param(MERGE_BOMB, "f.yaml:1:4 alias", id="merge-bomb"),
        pytest.param("a: 1\n<<: {b: 2}", "f.yaml:2:1 merge_key", id="merge-key"),
        pytest.param("a: !!python/object/apply:os.system [ls]", "f.yaml:1:4 tag", id="python-tag"),
        pytest.param("a: !!int 5", "f.yaml:1:4 tag", id="standard-tag"),
        pytest.param("a: ! x", "f.yaml:1:4 tag", id="plain-tag"),
        pytest.param("!x {a: b}", "f.yaml:1:1 tag", id="tag-of-a-mapping"),
        pytest.param("a: 1\n---\nb: 2", "f.yaml:2:1 several_documents", id="second-document"),
        pytest.param("a: 1\n...\n---\nb: 2", "f.yaml:3:1 several_documents", id="after-an-end"),
        pytest.param("? [a]\n: b", "f.yaml:1:3 complex_key", id="list-as-key"),
        pytest.param("{{a: b}: c}", "f.yaml:1:2 complex_key", id="mapping-as-key"),
        pytest.param("a: [b", "f.yaml:1:4 yaml_syntax", id="unclosed-list"),
        pytest.param("a: b: c", "f.yaml:1:5 yaml_syntax", id="two-colons"),
        pytest.param("a:\n\t- b", "f.yaml:2:1 yaml_syntax", id="a-tab"),
        pytest.param("a: 'b", "f.yaml:1:4 yaml_syntax", id="unclosed-quote"),
        pytest.param("%BAD x\n---\na: b", "f.yaml:1:5 yaml_syntax", id="unknown-directive"),
    ],
)
def test_what_could_surprise_is_refused_at_its_place(text: str, expected: str) -> None:
    assert told(refusal(text)) == expected


def test_a_tag_cannot_send_commands_to_a_terminal() -> None:
    assert "\x1b" not in refusal("a: !%1b x").message


def test_an_empty_text_is_no_node_and_no_problem() -> None:
    for text in (b"", b"\n\n", b"# only a comment\n", b"\xef\xbb\xbf"):
        assert parse_yaml(text, "f.yaml") == (None, [])


def test_a_document_that_is_only_a_dash_line_is_nothing() -> None:
    node, problems = parse_yaml(b"---\n", "f.yaml")
    assert isinstance(node, Scalar)
    assert (node.value, problems) == (None, [])
