"""`source:` of a component: a file inside the compositions folder, and never one outside."""

from pathlib import Path

import pytest
from tests.policy.texts import files_of, told

from remit.config.definitions.files import parse_definitions, read_files
from remit.policy.catalogue import Definitions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A compositions folder with parts, and secrets around it."""
    (tmp_path / "capabilities.yaml").write_text("capabilities: {}")
    parts = tmp_path / "compositions" / "parts"
    parts.mkdir(parents=True)
    (parts / "flags.yaml").write_text("state_read: true\n")
    (parts / "prompt.md").write_text("Be kind: [always]\n")
    (parts / "broken.yaml").write_text("a: true\na: false\nB: true\n")
    (parts / "empty.yaml").write_text("# nothing\n")
    (parts / "binary.md").write_bytes(b"a\xff")
    (tmp_path / "secret.yaml").write_text("stolen: true\n")
    evil = tmp_path / "compositions-evil"
    evil.mkdir()
    (evil / "flags.yaml").write_text("stolen: true\n")
    return tmp_path


def load(folder: Path, source: str, component: str = "capabilities") -> Definitions:
    text = f"name: p\ncomponents:\n- name: {component}\n  source: {source}\n"
    (folder / "compositions" / "p.yaml").write_text(text)
    return parse_definitions(read_files(folder / "capabilities.yaml", folder / "compositions"))


def problems_of(definitions: Definitions) -> list[str]:
    return [text.rpartition("/")[2] for text in told(definitions.problems)]


def test_a_component_is_read_from_its_source(folder: Path) -> None:
    definitions = load(folder, "parts/flags.yaml")
    assert definitions.problems == ()
    (flag,) = definitions.compositions[0].parts[0].flags
    assert flag.capability == "state_read"
    assert flag.place.file.endswith("parts/flags.yaml")


def test_a_prompt_is_read_as_plain_text(folder: Path) -> None:
    prompt = load(folder, "parts/prompt.md", "prompt").compositions[0].parts[0].prompt
    assert prompt is not None
    assert prompt.text == "Be kind: [always]\n"


def test_mistakes_in_a_source_are_told_at_their_places_there(folder: Path) -> None:
    assert problems_of(load(folder, "parts/broken.yaml")) == [
        "broken.yaml:2:1 duplicate_key",
        "broken.yaml:3:1 invalid_name",
    ]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("../secret.yaml", id="above"),
        pytest.param("parts/../../secret.yaml", id="above-by-a-detour"),
        pytest.param("../compositions-evil/flags.yaml", id="a-sibling-with-the-same-start"),
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param("{folder}/secret.yaml", id="absolute-beside"),
        pytest.param("link", id="a-link-out"),
        pytest.param("linked/secret.yaml", id="a-linked-folder"),
        pytest.param("circle", id="a-circle-of-links"),
        pytest.param("parts/missing.yaml", id="missing"),
        pytest.param("parts", id="a-folder"),
        pytest.param('""', id="empty-name"),
        pytest.param(".", id="the-folder-itself"),
        pytest.param('"parts/flags.yaml\\0.txt"', id="a-nul"),
        pytest.param("x" * 5_000, id="a-name-too-long"),
        pytest.param("x/" * 3_000, id="a-path-too-long"),
        pytest.param("parts/empty.yaml", id="an-empty-file"),
    ],
)
def test_a_source_that_is_no_file_inside_is_refused_at_its_place(folder: Path, source: str) -> None:
    inside = folder / "compositions"
    (inside / "link").symlink_to(folder / "secret.yaml")
    (inside / "linked").symlink_to(folder)
    (inside / "circle").symlink_to(inside / "circle")
    definitions = load(folder, source.replace("{folder}", str(folder)))
    assert problems_of(definitions) == ["p.yaml:4:11 bad_source"]
    assert "stolen" not in repr(definitions)


def test_an_empty_prompt_is_refused(folder: Path) -> None:
    (folder / "compositions" / "parts" / "blank.md").write_text(" \n")
    assert problems_of(load(folder, "parts/blank.md", "prompt")) == ["p.yaml:4:11 bad_source"]


def test_a_prompt_that_is_no_text_is_refused(folder: Path) -> None:
    assert problems_of(load(folder, "parts/binary.md", "prompt")) == ["binary.md:1:2 not_utf8"]


def test_a_link_inside_the_folder_is_fine(folder: Path) -> None:
    (folder / "compositions" / "parts" / "again.yaml").symlink_to("flags.yaml")
    assert load(folder, "parts/again.yaml").problems == ()


def test_a_folder_that_is_itself_a_link_is_fine(folder: Path) -> None:
    load(folder, "parts/flags.yaml")
    (folder / "linked").symlink_to(folder / "compositions")
    files = read_files(folder / "capabilities.yaml", folder / "linked")
    assert parse_definitions(files).problems == ()


def test_definitions_given_as_text_cannot_read_files() -> None:
    text = "name: p\ncomponents: [{name: prompt, source: /etc/passwd}]"
    definitions = parse_definitions(files_of("capabilities: {}", text))
    assert told(definitions.problems) == ["p0.yaml:2:37 bad_source"]
    assert "root" not in repr(definitions)
