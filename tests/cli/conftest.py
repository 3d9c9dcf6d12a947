"""A command line in this process: starting a new one for each question would be slow."""

import os
import shutil
from pathlib import Path

import pytest
from tests.cli.contract import write_contract
from tests.cli.shell import Shell

from remit.config.definitions.files import starter_dir


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Commands run in an empty folder, with a home of their own and no settings from outside."""
    for name in [name for name in os.environ if name.startswith(("REMIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


@pytest.fixture
def contract(tmp_path: Path) -> tuple[str, ...]:
    """The options that point a command at the contract's own examples."""
    folder = tmp_path / "contract"
    folder.mkdir()
    return write_contract(folder)


@pytest.fixture
def folders(shell: Shell) -> tuple[Path, Path]:
    """Two copies of the starter: one to leave alone, one to edit."""
    made = []
    for name in ("old", "new"):
        folder = shell.folder / name
        shutil.copytree(starter_dir() / "compositions", folder / "compositions")
        shutil.copy(starter_dir() / "capabilities.yaml", folder)
        made.append(folder)
    return made[0], made[1]
