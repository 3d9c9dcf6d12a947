"""The script that installs the outside parts, on machines that lack something."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.outside.parts import SCRIPT, Outside

HERE = Path(__file__).parent
TOOLS = [
    "sh",
    "cat",
    "cksum",
    "uname",
    "mkdir",
    "touch",
    "rm",
    "cp",
    "date",
    "tail",
    "tr",
    "find",
    "mv",
]

FAKE_PYTHON = """#!/bin/sh
case "$*" in
*_base_executable*) echo "$0" ;;
*venv*) exit 1 ;;
*) exec {} "$@" ;;
esac
"""


def installed(bin_folder: Path, target: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    home = {"HOME": str(target.parent), "REMIT_OUTSIDE": str(target)}
    return subprocess.run(  # noqa: S603 - our own script
        ["/bin/sh", str(SCRIPT)],
        env={"PATH": str(bin_folder), **home, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder of commands without npm."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def test_a_machine_without_npm_is_told_so_and_goes_on(bare: Path, tmp_path: Path) -> None:
    done = installed(bare, tmp_path / "parts")
    assert done.returncode == 0
    assert "npm is not on PATH" in done.stderr
    assert not (tmp_path / "parts").exists()


def test_continuous_integration_without_npm_fails(bare: Path, tmp_path: Path) -> None:
    assert installed(bare, tmp_path / "parts", CI="true").returncode == 1


def test_an_install_that_fails_leaves_nothing_behind(bare: Path, tmp_path: Path) -> None:
    npm = bare / "npm"
    npm.write_text("#!/bin/sh\necho this registry is down >&2\nexit 1\n", encoding="utf-8")
    npm.chmod(0o755)
    python = bare / "python3"  # can do everything but make an environment
    python.write_text(FAKE_PYTHON.format(sys.executable), encoding="utf-8")
    python.chmod(0o755)
    done = installed(bare, tmp_path / "parts", CI="true")
    assert done.returncode == 1
    assert "this registry is down" in done.stderr
    assert "npm could not be installed" in done.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"bin"}
    assert left <= {"parts.lock"}


def test_parts_that_are_there_cost_one_line(outside: Outside) -> None:
    env = {**os.environ, "REMIT_OUTSIDE": str(outside.folder)}
    done = subprocess.run(  # noqa: S603 - our own script
        ["/bin/sh", str(SCRIPT)], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == ""
    assert done.stderr.splitlines() == [f"remit: outside parts for tests/outside: {outside.folder}"]


def test_the_lock_of_npm_names_no_host_and_every_package_has_a_hash() -> None:
    packages = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    del packages[""]
    assert [name for name, one in packages.items() if "resolved" in one] == []
    assert [name for name, one in packages.items() if "integrity" not in one] == []


@pytest.mark.parametrize("name", ["mcp-server-time.lock", "mcp-server-git.lock"])
def test_a_lock_of_a_server_names_no_host_and_every_line_has_a_hash(name: str) -> None:
    text = (HERE / name).read_text(encoding="utf-8")
    assert "://" not in text
    entries = text.replace("\\\n", " ").splitlines()
    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
