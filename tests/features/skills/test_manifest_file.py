"""CAPABILITY.yaml: strict, and no path in it leads out of its folder."""

import os
from pathlib import Path

import pytest

from remit.cli.definitions import manifest_schema
from remit.config.strict.kinds import Report
from remit.errors import Problem
from remit.features.skills.manifest_file import read_manifest_file
from remit.model.descriptor import Descriptor, Parameter

START = "name: docs\nkind: tool\ndescription: Finds documents\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "x"
    folder.mkdir()
    return folder


def read(folder: Path, text: str) -> Descriptor:
    report = Report()
    found = read_manifest_file(text.encode(), "x/CAPABILITY.yaml", folder, report)
    assert found is not None, report.problems
    assert not report.problems
    return found


def problems_of(folder: Path, text: str) -> list[Problem]:
    report = Report()
    assert read_manifest_file(text.encode(), "x/CAPABILITY.yaml", folder, report) is None
    return report.problems


def code_of(folder: Path, text: str) -> tuple[str, int]:
    (problem,) = problems_of(folder, text)
    return (problem.code, problem.place.line)


def test_three_keys_make_a_capability(folder: Path) -> None:
    found = read(folder, START)
    assert (found.id, found.kind, found.title) == ("tool:docs", "tool", "Docs")
    assert found.available
    assert found.full_schema is None
    assert found.source.content_file == ""


def test_the_example_of_other_programs_is_understood(folder: Path) -> None:
    (folder / "SKILL.md").write_text("text")
    found = read(
        folder,
        """
id: tool:my-custom-tool
kind: tool
name: my-custom-tool
displayName: My Custom Tool
description: Searches internal documents
category: information
tags: [search, internal]
requiredSecrets: [INTERNAL_API_KEY]
hasSideEffects: true
inputSchema: { type: object, properties: { query: { type: string } }, required: [query] }
skillContent: ./SKILL.md
""",
    )
    assert found.display_name == "My Custom Tool"
    assert found.required_secrets == ("INTERNAL_API_KEY",)
    assert found.has_side_effects
    assert found.parameters == (Parameter("query", "string", "", required=True),)
    assert found.source.content_file == "./SKILL.md"


def test_files_beside_a_manifest_are_found(folder: Path) -> None:
    (folder / "SKILL.md").write_text("text")
    (folder / "schema.json").write_text('{"properties": {"q": {"description": "what"}}}')
    found = read(folder, START)
    assert found.source.content_file == "SKILL.md"
    assert found.parameters == (Parameter("q", "", "what"),)


def test_a_manifest_says_who_sees_it_and_what_is_called(folder: Path) -> None:
    found = read(folder, START + "event: docs:find\ncapabilities: [docs_read]\navailable: false\n")
    assert (found.event, found.capabilities) == ("docs:find", ("docs_read",))
    assert not found.available


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", ("empty_file", 1), id="empty"),
        pytest.param("- a", ("wrong_type", 1), id="a-list"),
        pytest.param("name: x\nkind: tool\n", ("missing_key", 1), id="no-description"),
        pytest.param(START + "catgory: x\n", ("unknown_key", 4), id="unknown-key"),
        pytest.param(START + "requires_tools: [x]\n", ("unknown_key", 4), id="skill-spelling"),
        pytest.param(START + "has_side_effects: yes\n", ("wrong_type", 4), id="yes"),
        pytest.param(START + "name: y\n", ("duplicate_key", 4), id="twice"),
        pytest.param(
            START + "display_name: a\ndisplayName: b\n", ("duplicate_key", 5), id="two-spellings"
        ),
        pytest.param(START + "id: skill:docs\n", ("invalid_name", 4), id="id-of-another-kind"),
        pytest.param(START + "id: docs\n", ("invalid_name", 4), id="id-without-kind"),
        pytest.param(START + "event: Docs\n", ("invalid_name", 4), id="no-event"),
        pytest.param(START + "event: 'docs:*'\n", ("invalid_name", 4), id="a-pattern"),
        pytest.param(START + "capabilities: []\n", ("wrong_type", 4), id="held-by-none"),
        pytest.param(START + "capabilities: ['!nobody']\n", ("invalid_name", 4), id="no-name"),
        pytest.param(
            START + "input_schema: {type: object}\nschema: schema.json\n",
            ("duplicate_key", 5),
            id="two-schemas",
        ),
        pytest.param(START + "a: &a [*a]\n", ("alias", 4), id="alias"),
    ],
)
def test_a_mistake_refuses_the_manifest_and_is_shown(
    folder: Path, text: str, expected: tuple[str, int]
) -> None:
    assert code_of(folder, text) == expected


def test_a_misspelt_key_comes_with_the_nearest(folder: Path) -> None:
    (problem,) = problems_of(folder, START + "requiredSecret: [x]\n")
    assert "required_secrets" in problem.hint or "requiredSecrets" in problem.hint


def test_a_kind_that_is_none_is_refused(folder: Path) -> None:
    (problem,) = problems_of(folder, "name: x\ndescription: y\nkind: tol\n")
    assert (problem.code, "tool" in problem.hint) == ("unknown_value", True)


OUTSIDE = [
    "../secret.md",
    "../../etc/passwd",
    "/etc/passwd",
    "../x-evil/a.md",
    "link.md",
    "in/a.md",
]
OUTSIDE += ["a\\0b", ".", "..", "", "circle"]


@pytest.mark.parametrize("key", ["content", "skillContent", "schema"])
@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_folder(folder: Path, key: str, path: str) -> None:
    evil = folder.with_name("x-evil")
    evil.mkdir()
    (evil / "a.md").write_text("{}")
    folder.with_name("secret.md").write_text("{}")
    (folder / "link.md").symlink_to(folder.with_name("secret.md"))
    (folder / "in").symlink_to(evil)
    (folder / "circle").symlink_to("circle")
    (problem,) = problems_of(folder, f'{START}{key}: "{path}"\n')
    assert (problem.code, problem.place.line) == ("bad_source", 4)


@pytest.mark.parametrize("name", ["SKILL.md", "schema.json"])
def test_a_usual_file_that_leads_out_is_refused_too(folder: Path, name: str) -> None:
    (folder.parent / "secret").write_text("{}")
    (folder / name).symlink_to(folder.parent / "secret")
    assert code_of(folder, START) == ("bad_source", 1)


@pytest.mark.parametrize("key", ["content", "schema"])
def test_what_is_no_file_is_refused_without_waiting_for_it(folder: Path, key: str) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "dir").mkdir()
    for name in ("pipe", "dir", "missing"):
        assert code_of(folder, f"{START}{key}: {name}\n") == ("bad_source", 4)


def test_a_link_that_stays_inside_is_followed(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "text.md").write_text("text")
    (folder / "SKILL.md").symlink_to("docs/text.md")
    assert read(folder, START).source.content_file == "SKILL.md"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(b'{\n "a": }', ("json_syntax", 2, 7), id="syntax"),
        pytest.param(b"[]", ("wrong_type", 1, 1), id="a-list"),
        pytest.param(b'{"a": 1, "a": 2}', ("json_syntax", 1, 1), id="a-key-twice"),
        pytest.param(b'{"a": NaN}', ("json_syntax", 1, 1), id="not-a-number"),
        pytest.param(b'{"a": "\\ud800"}', ("json_syntax", 1, 1), id="half-a-character"),
        pytest.param(b'{"a": 99999999999999999999999}', ("json_syntax", 1, 1), id="huge-number"),
        pytest.param(b'{"a": ' * 60 + b"1" + b"}" * 60, ("too_deep", 1, 1), id="deep"),
        pytest.param(b'{"a": ' * 99_999, ("too_large", 1, 1), id="large"),
        pytest.param(b'{"a": ' * 40_000, ("json_syntax", 1, 1), id="bottomless"),
        pytest.param(b'{"a": "\xff"}', ("not_utf8", 1, 8), id="not-utf-8"),
    ],
)
def test_a_schema_that_cannot_be_sent_is_refused(
    folder: Path, schema: bytes, expected: tuple[str, int, int]
) -> None:
    (folder / "schema.json").write_bytes(schema)
    (problem,) = problems_of(folder, START)
    place = problem.place
    assert (problem.code, place.line, place.column) == expected
    assert place.file == "x/schema.json"


def test_the_schema_for_editors_knows_both_spellings() -> None:
    schema = manifest_schema()
    assert schema["required"] == ["name", "kind", "description"]
    assert {"display_name", "displayName", "skillContent"} < set(schema["properties"])
    assert schema["additionalProperties"] is False
