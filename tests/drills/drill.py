"""Running a drill of `tools/drills` as its own process, in its short form."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import remit
import remit_client

DRILLS = Path(__file__).parents[2] / "tools" / "drills"
PATIENCE = 180.0
"""Seconds until a test gives up; a drill in its short form needs some."""


def figures_of(name: str, *arguments: str) -> dict[str, Any]:
    """The one line that a drill prints; what it complains about fails the test."""
    sources = [str(Path(package.__path__[0]).parent) for package in (remit, remit_client)]
    done = subprocess.run(  # noqa: S603 - our own drill
        [sys.executable, str(DRILLS / f"{name}.py"), "--json", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sources)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()
    figures: dict[str, Any] = json.loads(line)
    assert figures["problems"] == 0
    return figures
