"""How many files a request touches behind the face, as tools/lib/walk.py measures it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# All files, as measured last: a walk that becomes shorter lowers its number. The goals stand in the
# tool; here they are held without the files of kernel and model that every change touches.
FILES = {
    "check": 8,
    "why": 19,
    "reload": 29,
    "upstream": 22,
    "discover": 28,
    "inject": 30,  # its words call for a card now, so it ends in the audit and on the bill
    "set": 21,
    "spawn": 33,
}


def walk(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", str(root / "tools" / "lib" / "walk.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.fixture(scope="module")
def walks(root: Path) -> dict[str, Any]:
    done = walk(root, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_walk_has_its_limit(walks: dict[str, Any]) -> None:
    assert walks.keys() == FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_a_walk_touches_no_more_files_than_before(walks: dict[str, Any], name: str) -> None:
    files = walks[name]["files"]
    assert len(files) <= FILES[name], "\n".join(files)


@pytest.mark.parametrize("name", [name for name in FILES if name != "set"])
def test_a_walk_reaches_its_goal_without_the_road_of_every_change(
    walks: dict[str, Any], name: str
) -> None:
    own = walks[name]["own"]
    assert len(own) <= walks[name]["goal"], "\n".join(own)


@pytest.mark.parametrize("name", FILES)
def test_a_walk_goes_through_the_door(walks: dict[str, Any], name: str) -> None:
    first, functions = next(iter(walks[name]["files"].items()))
    assert first == "kernel/dispatch/dispatcher.py"
    assert "Dispatcher.submit" in functions


def test_work_of_other_threads_is_shown_and_not_counted(walks: dict[str, Any]) -> None:
    reload = walks["reload"]
    assert "policy/compile.py" in reload["workers"]
    assert not reload["files"].keys() & reload["workers"].keys()


def test_a_walk_is_shown_with_its_files_and_functions(root: Path) -> None:
    done = walk(root, "check", "agent:spawn")
    assert done.returncode == 0, done.stderr
    assert "1 · kernel/dispatch/dispatcher.py" in done.stdout
    assert "features/permissions/" in done.stdout
    assert "of them its own (goal: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["whither"], "there is no walk 'whither'; there are check, why", id="walk"),
        pytest.param(["spawn", "nobody"], "error: ", id="profile"),
    ],
)
def test_what_cannot_be_walked_is_said(root: Path, arguments: list[str], told: str) -> None:
    done = walk(root, *arguments)
    assert done.returncode != 0
    assert told in done.stderr
    assert "Traceback" not in done.stderr
