"""registry.yaml: what it says, and every mistake with its place and what was meant."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.registry.file import (
    RegistryFile,
    inspect_registry,
    parse_registry,
    unknown_references,
)

WHOLE = """
version: 1
tools:
  tool:state:set:
    capability: remember
    description: Keeps a value
    tags: [EU, salary]
    dependencies: [tool:state:get]
    supersedes: tool:state:put
    version: "2"
    examples:
      - {input: {key: a, value: 1}, output: null, note: a number}
skills:
  skill:git:
    applies_to: [remember, tool:state:get]
    conflicts_with: [skill:hg]
    variants: {small: skill:git-small}
"""
IDS = {
    *("tool:state:set", "tool:state:get", "tool:state:put"),
    *("skill:git", "skill:hg", "skill:git-small"),
}


def parse(text: str) -> RegistryFile:
    return parse_registry(text.encode(), Path("registry.yaml"))


def told(text: str) -> list[tuple[str, str, str]]:
    return [(str(one.place), one.code, one.hint) for one in parse(text).problems]


def test_a_file_says_of_tools_and_skills_what_cannot_be_read_off_them() -> None:
    found = parse(WHOLE)
    assert found.problems == ()
    tool, skill = (one.declaration for one in found.entries)
    assert (tool.id, tool.capability, tool.tags) == ("tool:state:set", "remember", ("eu", "salary"))
    assert (tool.dependencies, tool.supersedes) == (("tool:state:get",), "tool:state:put")
    assert (tool.examples[0].input, tool.version) == ({"key": "a", "value": 1}, "2")
    assert (skill.applies_to, skill.conflicts_with) == (
        ("remember", "tool:state:get"),
        ("skill:hg",),
    )
    assert skill.variants == {"small": "skill:git-small"}
    assert unknown_references(found.entries, IDS, ()) == ()


@pytest.mark.parametrize(
    ("text", "place", "code", "hint"),
    [
        ("version: 2\n", "registry.yaml:1:10", "out_of_range", ""),
        ("tool: {}\n", "registry.yaml:1:1", "unknown_key", "tools"),
        ("tools: {tool:a: {tag: [x]}}\n", "registry.yaml:1:18", "unknown_key", "tags"),
        ("tools: {tool:a: {applies_to: [x]}}\n", "registry.yaml:1:18", "unknown_key", ""),
        ("tools: {skill:a: {}}\n", "registry.yaml:1:9", "invalid_name", ""),
        ("tools: {tool:a: {dependencies: [b]}}\n", "registry.yaml:1:33", "invalid_name", ""),
        ("tools: {tool:a: {dependencies: [tool:a]}}\n", "registry.yaml:1:33", "self_reference", ""),
        ("tools: {tool:a: {version: 2}}\n", "registry.yaml:1:27", "wrong_type", '"2"'),
        ("tools: {tool:a: {tags: [x, X]}}\n", "registry.yaml:1:28", "duplicate_key", ""),
        ("tools: [a]\n", "registry.yaml:1:8", "wrong_type", ""),
        ("skills: {skill:a: {variants: [x]}}\n", "registry.yaml:1:30", "wrong_type", ""),
        ("", "registry.yaml:1:1", "empty_file", "version"),
        ("tools: {a\n", "registry.yaml:1:8", "yaml_syntax", ""),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, place: str, code: str, hint: str) -> None:
    problems = told(text)
    assert problems
    assert problems[0][:2] == (place, code)
    assert hint in problems[0][2]
    assert parse(text).errors


def test_every_mistake_is_found_in_one_reading() -> None:
    text = "tools:\n  tool:a: {x: 1, tags: 5}\n  b: {}\nskills: {skill:c: {y: 1}}\n"
    assert [code for _, code, _ in told(text)] == [
        *("unknown_key", "wrong_type", "invalid_name", "unknown_key")
    ]


def test_what_is_named_and_is_not_there_is_told_with_what_was_meant() -> None:
    found = parse(
        WHOLE.replace("[tool:state:get]", "[tool:state:gte]").replace("remember,", "rem,")
    )
    problems = unknown_references(found.entries, IDS, ())
    assert [(one.place.line, one.code) for one in problems] == [
        (8, "unknown_reference"),
        (15, "unknown_reference"),
    ]
    assert "tool:state:get" in problems[0].hint


def test_an_absent_file_declares_nothing_and_an_unreadable_one_is_an_error(tmp_path: Path) -> None:
    assert inspect_registry(tmp_path / "none.yaml") == RegistryFile()
    (problem,) = inspect_registry(tmp_path).errors
    assert problem.code == "unreadable"


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = parse_registry(text.encode("utf-8", "surrogatepass"), Path("registry.yaml"))
    assert found.problems or found.entries == ()
