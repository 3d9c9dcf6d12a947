"""A question must be answered fast, so nothing heavy is imported for it."""

import os
import subprocess
import sys
from pathlib import Path

import remit
import remit_client

HEAVY = [
    "structlog",
    "rich",
    "anyio",
    "zmq",
    "asyncio",
    "ruamel",
    "importlib.metadata",
    "numpy",
]
SCRIPT = """
import sys
from remit.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print(end.code, *(name for name in HEAVY if name in sys.modules))
"""


def test_a_question_imports_nothing_heavy(tmp_path: Path) -> None:
    sources = [str(Path(package.__path__[0]).parent) for package in (remit, remit_client)]
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", f"HEAVY = {HEAVY}\n{SCRIPT}", "can", "observer", "state:get"],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": ":".join(sources)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert done.stdout.splitlines()[-1] == "0", done.stdout
