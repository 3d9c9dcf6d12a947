"""The key `launcher`: both forms in both places, and every way to get it wrong."""

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.policy.texts import files_of, told

from remit.cli.definitions import composition_schema
from remit.config.definitions.files import parse_definitions
from remit.errors import Place
from remit.model.launch import LauncherText, Template

FULL = """{command: /bin/agent, args: [-v, "{{team}}"], env: {TEAM: "{{team}}"},
  cwd: /srv, restart: on_failure, max_restarts: 2}"""


def read(text: str) -> tuple[list[LauncherText], list[str]]:
    """The launchers of a composition, and its problems as places and codes."""
    definitions = parse_definitions(files_of("capabilities: {}", f"name: p\n{text}\n"))
    parts = [part for one in definitions.compositions for part in one.parts]
    problems = [problem.removeprefix("p0.yaml:") for problem in told(definitions.problems)]
    return [part.launcher for part in parts if part.launcher], problems


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"launcher: {FULL}", id="short-form"),
        pytest.param(
            f"components:\n  - name: launcher\n    inline: {FULL}".replace(
                "\n  cwd", "\n      cwd"
            ),
            id="component",
        ),
    ],
)
def test_a_launcher_is_read_with_the_places_of_its_texts(text: str) -> None:
    (launcher,), problems = read(text)
    assert problems == []
    assert launcher.command == "/bin/agent"
    assert [text.text for text in launcher.args] == ["-v", "{{team}}"]
    assert [(name, text.text) for name, text in launcher.env] == [("TEAM", "{{team}}")]
    assert launcher.cwd is not None
    assert launcher.cwd.text == "/srv"
    assert (launcher.restart, launcher.max_restarts) == ("on_failure", 2)


def test_a_word_names_a_ready_launcher_or_none() -> None:
    place = Place("p0.yaml", 2, 11)
    assert read("launcher: claude") == ([LauncherText(place=place, ready="claude")], [])
    assert read("launcher: none") == ([LauncherText(place=place)], [])
    (launcher,), _ = read("launcher: {ready: claude, args: [-p]}")
    assert (launcher.ready, launcher.command) == ("claude", "")
    assert launcher.args == (Template("-p", Place("p0.yaml", 2, 34)),)


WRONG = [
    ("launcher: claud", "2:11 unknown_value"),
    ("launcher: 3", "2:11 unknown_value"),
    ("launcher: [claude]", "2:11 wrong_type"),
    ("launcher: {}", "2:11 launcher_command"),
    ("launcher: {args: [x]}", "2:11 launcher_command"),
    ("launcher: {command: a, ready: claude}", "2:11 launcher_command"),
    ('launcher: {command: "{{a}}"}', "2:21 invalid_name"),
    ("launcher: {command: a, arg: [x]}", "2:24 unknown_key"),
    ("launcher: {command: a, args: x}", "2:30 wrong_type"),
    ("launcher: {command: a, args: [1]}", "2:31 wrong_type"),
    ("launcher: {command: a, env: [X]}", "2:29 wrong_type"),
    ("launcher: {command: a, env: {X: 1}}", "2:33 wrong_type"),
    ("launcher: {command: a, env: {REMIT_KEY: x}}", "2:30 invalid_name"),
    ("launcher: {command: a, env: {LD_PRELOAD: x}}", "2:30 invalid_name"),
    ("launcher: {command: a, restart: ever}", "2:33 unknown_value"),
    ("launcher: {command: a, max_restarts: 6}", "2:38 out_of_range"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG)
def test_a_mistake_is_told_with_its_place(text: str, problem: str) -> None:
    assert read(text)[1] == [problem]


def test_a_mistyped_word_or_key_is_answered_with_the_right_one() -> None:
    texts = ("name: p\nlauncher: claud\n", "name: q\nlauncher: {comand: a}\n")
    problems = parse_definitions(files_of("capabilities: {}", *texts)).problems
    hints = [problem.hint for problem in problems if problem.code.startswith("unknown")]
    assert ["claude" in hints[0], "command" in hints[1]] == [True, True]


@pytest.mark.parametrize("text", ["claude", "none", "{ready: claude}", FULL])
def test_an_editor_accepts_what_is_understood(text: str) -> None:
    Draft202012Validator(composition_schema()).validate(
        yaml.safe_load(f"name: p\nlauncher: {text}")
    )


@pytest.mark.parametrize("text", [text for text, _ in WRONG])
def test_an_editor_refuses_what_is_not_understood(text: str) -> None:
    wrong = yaml.safe_load(f"name: p\n{text}")
    assert not Draft202012Validator(composition_schema()).is_valid(wrong)
