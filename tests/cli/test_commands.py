"""Commands name other commands as they were called themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.shell import Shell


def started(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, as a person would."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
    env = kept | {"HOME": str(folder), "PATH": f"{folder}{os.pathsep}{kept['PATH']}"}
    return subprocess.run(  # noqa: S603 - our own command
        [*words, "plan", "--home", str(folder / "home")],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """What pip puts into a folder of programs."""
    path = tmp_path / "remit"
    lines = [
        f"#!{sys.executable}",
        "import sys",
        "from remit.__main__ import main",
        "sys.exit(main())",
    ]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


def test_a_hint_of_the_module_names_the_module(tmp_path: Path) -> None:
    done = started(tmp_path, sys.executable, "-P", "-m", "remit")
    assert (
        f"hint: name the old definitions: {sys.executable} -P -m remit plan --from" in done.stderr
    )


def test_a_hint_of_the_installed_program_names_it_as_it_is_found(script: Path) -> None:
    assert "definitions: remit plan --from" in started(script.parent, str(script)).stderr
    other = script.parent / "else" / "remit"
    other.parent.mkdir()
    script.rename(other)
    assert "definitions: else/remit plan --from" in started(script.parent, "else/remit").stderr


def test_hints_usage_and_next_steps_name_what_tools_run_says(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_INVOKED_AS", "./tools/run")
    monkeypatch.setenv("REMIT_SHOW_NEXT", "1")
    assert "definitions: ./tools/run plan --from" in shell.run("plan").err
    assert "Try './tools/run plan --help'" in shell.run("plan", "--nope").err
    assert "Start with:  ./tools/run check, then ./tools/run resolve" in shell.run("--help").out
    assert shell.run("check").out.endswith("next: ./tools/run resolve observer\n")


def test_a_warning_about_definitions_names_it_too(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_INVOKED_AS", "./tools/run")
    assert "with: ./tools/run review approve orchestrator" in shell.run("check").err


def test_programs_always_read_the_same_name(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_INVOKED_AS", "./tools/run")
    assert (
        shell.run("plan", "--json")
        .json["error"]["hint"]
        .startswith("name the old definitions: remit plan")
    )


def test_the_list_of_commands_says_what_apply_does_before_it_edits(shell: Shell) -> None:
    line = "  apply        Show what edited definitions change, ask, put them in force.\n"
    assert line in shell.run("--help").out
