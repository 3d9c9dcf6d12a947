"""Loading a whole set of files: every mistake of every file at once, each with a caret."""

from pathlib import Path

import pytest
from tests.policy.texts import CAPABILITIES, EVENTS, refused, told, underlined, universe_of

from remit.config.definitions.files import MAX_FILES, Files, edited, parse_definitions, read_files
from remit.config.strict.kinds import MAX_PROBLEMS
from remit.config.strict.yaml import MAX_BYTES
from remit.errors import DefinitionError, Problem
from remit.policy.compile import compile_definitions

CATALOGUE = """capabilities:
  state_read:
    description: Read
    event_pattern: [state:get]
  state_write:
    description: Write
    event_patterns: [state:set, "Bad:*"]
    requires: [state_reed]
"""
FIRST = """name: first
extends: secnod
capabilities: {state_wrte: true, state_read: yes}
disallowed_tools: [state:delet]
"""
SECOND = """name: second
limits: {max_depth: many}
additional_tools: ["*"]
prompt: Hello {{who}}
"""


def test_all_mistakes_of_all_files_are_told_at_once() -> None:
    assert told(refused(CATALOGUE, FIRST, SECOND)) == [
        "capabilities.yaml:4:5 unknown_key",
        "capabilities.yaml:7:33 invalid_pattern",
        "capabilities.yaml:8:16 unknown_capability",
        "p0.yaml:2:10 unknown_profile",
        "p0.yaml:3:16 unknown_capability",
        "p0.yaml:3:46 wrong_type",
        "p0.yaml:4:20 dead_denial",
        "p1.yaml:2:21 wrong_type",
        "p1.yaml:3:20 bare_wildcard",
        "p1.yaml:4:9 unknown_variable",
    ]


def test_a_caret_stands_under_the_word_that_is_wrong() -> None:
    problems = refused(CATALOGUE, FIRST, SECOND)
    assert [underlined(problem) for problem in problems] == [
        *("event_pattern", '"Bad:*"', "state_reed", "secnod", "state_wrte", "yes", "state:delet"),
        *("many", '"*"', "Hello"),
    ]


def test_a_typo_gets_a_suggestion_wherever_a_name_can_stand() -> None:
    hints = {problem.code: problem.hint for problem in refused(CATALOGUE, FIRST, SECOND)}
    assert hints["unknown_key"] == "did you mean 'event_patterns'?"
    assert hints["unknown_profile"] == "did you mean 'second'?"
    assert hints["unknown_capability"] == "did you mean 'state_write'?"
    assert hints["dead_denial"] == "did you mean 'state:delete'?"


def test_the_text_for_the_terminal_is_complete() -> None:
    problem = refused(CAPABILITIES, "name: p\ncapabilities: [state_raed]")[0]
    assert str(problem).split("\n") == [
        "p0.yaml:2:16: there is no capability 'state_raed' [unknown_capability]",
        "    capabilities: [state_raed]",
        "                   ^^^^^^^^^^",
        "    hint: did you mean 'state_read'?",
    ]


@pytest.mark.parametrize("start", ["\ufeffname: p\r\n", "name: p\r", "name: p # ü\u2028"])
def test_a_caret_is_right_after_byte_order_marks_and_line_ends_of_all_kinds(start: str) -> None:
    problem = refused(CAPABILITIES, start + "limits: {ä: 1}")[0]
    assert told([problem]) == ["p0.yaml:2:10 unknown_key"]
    assert underlined(problem) == "ä"


def test_a_broken_catalogue_is_not_blamed_on_the_profiles() -> None:
    profile = "name: p\ncapabilities: [state_read]\ndisallowed_tools: [x:y]"
    assert told(refused("capabilities: [", profile)) == ["capabilities.yaml:1:15 yaml_syntax"]


def test_a_broken_profile_does_not_hide_the_mistakes_of_another() -> None:
    problems = refused(CAPABILITIES, "name: [", "name: p\nlimit: {}")
    assert told(problems) == ["p0.yaml:1:7 yaml_syntax", "p1.yaml:2:1 unknown_key"]


def test_ten_thousand_mistakes_are_bounded() -> None:
    keys = "\n".join(f"bad{at}: 1" for at in range(10_000))
    *shown, more = refused(CAPABILITIES, f"name: p\n{keys}")
    assert len(shown) == MAX_PROBLEMS
    assert (more.code, more.place.line) == ("more_problems", MAX_PROBLEMS + 2)
    assert more.message == "9,800 more mistakes are not shown"


def test_as_many_mistakes_as_are_shown_are_not_said_to_be_more() -> None:
    keys = "\n".join(f"bad{at}: 1" for at in range(MAX_PROBLEMS))
    assert {one.code for one in refused(CAPABILITIES, f"name: p\n{keys}")} == {"unknown_key"}


def load(folder: Path) -> tuple[Files, list[Problem]]:
    files = read_files(folder / "capabilities.yaml", folder / "compositions")
    try:
        compile_definitions(parse_definitions(files), universe_of(EVENTS))
    except DefinitionError as error:
        return files, list(error.problems)
    return files, []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A catalogue and one profile on disk."""
    (tmp_path / "compositions").mkdir()
    (tmp_path / "capabilities.yaml").write_text(CAPABILITIES)
    (tmp_path / "compositions" / "p.yaml").write_text("{name: p, capabilities: [state_read]}")
    return tmp_path


def test_files_on_disk_are_read(folder: Path) -> None:
    (folder / "compositions" / "q.yml").write_text("name: q\nextends: p")
    files, problems = load(folder)
    assert problems == []
    assert [Path(name).name for name in files.compositions] == ["p.yaml", "q.yml"]


def test_other_files_and_folders_are_passed_over(folder: Path) -> None:
    for name in ("notes.txt", ".hidden.yaml", "p.yaml~", "p.yaml.bak"):
        (folder / "compositions" / name).write_text("[")
    (folder / "compositions" / "parts").mkdir()
    assert load(folder)[1] == []


def codes_and_names(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(Path(problem.place.file).name, problem.code) for problem in problems]


def test_a_missing_catalogue_is_told(folder: Path) -> None:
    (folder / "capabilities.yaml").unlink()
    assert codes_and_names(load(folder)[1]) == [("capabilities.yaml", "unreadable")]


def test_a_folder_instead_of_a_file_is_told(folder: Path) -> None:
    (folder / "capabilities.yaml").unlink()
    (folder / "capabilities.yaml").mkdir()
    (folder / "compositions" / "q.yaml").mkdir()
    assert codes_and_names(load(folder)[1]) == [
        ("capabilities.yaml", "unreadable"),
        ("q.yaml", "unreadable"),
    ]


def test_a_link_to_nowhere_never_makes_a_profile_vanish_in_silence(folder: Path) -> None:
    (folder / "compositions" / "q.yaml").symlink_to(folder / "gone.yaml")
    (folder / "compositions" / "r.yaml").symlink_to(folder / "compositions" / "r.yaml")
    problems = load(folder)[1]
    assert codes_and_names(problems) == [("q.yaml", "unreadable"), ("r.yaml", "unreadable")]


def test_a_missing_folder_of_compositions_is_told(folder: Path) -> None:
    files = read_files(folder / "capabilities.yaml", folder / "nothing")
    assert codes_and_names(files.problems) == [("nothing", "not_found")]
    a_file = read_files(folder / "capabilities.yaml", folder / "capabilities.yaml")
    assert codes_and_names(a_file.problems) == [("capabilities.yaml", "not_found")]


def test_a_catalogue_alone_is_enough(folder: Path) -> None:
    files = read_files(folder / "capabilities.yaml", None)
    assert parse_definitions(files).problems == ()


def test_a_huge_file_is_not_read_to_its_end(folder: Path) -> None:
    (folder / "compositions" / "p.yaml").write_bytes(b"#" * (10 << 20))
    files, problems = load(folder)
    assert codes_and_names(problems) == [("p.yaml", "too_large")]
    assert max(map(len, files.contents.values())) == MAX_BYTES + 1
    assert files.illustrate(problems)[0].source == ""


def test_too_many_files_are_refused(folder: Path) -> None:
    for at in range(MAX_FILES):
        (folder / "compositions" / f"x{at}.yaml").touch()
    files = read_files(folder / "capabilities.yaml", folder / "compositions")
    assert codes_and_names(files.problems) == [("compositions", "too_large")]


def test_the_shipped_starter_has_no_mistakes(root: Path) -> None:
    files = read_files(root / "capabilities.yaml", root / "compositions")
    assert parse_definitions(files).problems == ()


def test_an_edit_replaces_adds_and_leaves_out_texts_without_writing_them(folder: Path) -> None:
    files = read_files(folder / "capabilities.yaml", folder / "compositions")
    texts = {"p.yaml": "name: p2", "new.yaml": "name: new"}
    after = parse_definitions(edited(files, "capabilities: {}", texts, []))
    assert [c.name for c in after.compositions] == ["new", "p2"]
    assert after.capabilities == ()
    without = parse_definitions(edited(files, None, {}, ["p.yaml"]))
    assert without.compositions == ()
    before = parse_definitions(files)
    assert [c.name for c in before.compositions] == ["p"]
    assert sorted(path.name for path in (folder / "compositions").iterdir()) == ["p.yaml"]


@pytest.mark.parametrize("name", ["../p.yaml", "/etc/p.yaml", "a/p.yaml", "p.txt", "", "..", "p"])
def test_an_edit_names_a_plain_yaml_file(folder: Path, name: str) -> None:
    files = read_files(folder / "capabilities.yaml", folder / "compositions")
    with pytest.raises(ValueError, match="file name"):
        edited(files, None, {name: "name: p"}, [])
