"""A question must be answered fast, so nothing heavy is imported for it, and no handler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    "sqlite3",
]
SCRIPT = """
import sys
from remit.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print(end.code, *sorted(sys.modules))
"""
SELDOM = ["html.entities", "shutil", "bz2", "lzma", "httpx", "mcp", "numpy", "starlette", "uvicorn"]
DAEMON = """
import sys
sys.modules["rich"] = None  # only the gate installs it, and structlog imports it where it is
import remit.app.daemon
from remit.app.features import FEATURES
from importlib import import_module
for feature in FEATURES:
    for module in (*feature.events, *filter(None, [feature.setup])):
        import_module(module)
print(*sorted(sys.modules))
"""
SOURCES = [str(Path(package.__path__[0]).parent) for package in (remit, remit_client)]
QUESTIONS = [
    ("can", "observer", "state:get"),
    ("why", "observer", "state:get"),
    ("check",),
    ("resolve", "observer"),
    ("who-can", "state:get"),
    ("gives", "state_read"),
]


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, *command],
        env={
            "HOME": str(folder),
            "REMIT_HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": ":".join(SOURCES),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("question", QUESTIONS, ids=[words[0] for words in QUESTIONS])
def test_a_question_imports_nothing_heavy(tmp_path: Path, question: tuple[str, ...]) -> None:
    code, *modules = run("-c", SCRIPT, *question, folder=tmp_path).split()
    assert code == "0"
    assert [name for name in HEAVY if name in modules] == []


@pytest.mark.parametrize("question", QUESTIONS, ids=[words[0] for words in QUESTIONS])
def test_a_question_imports_no_handler(tmp_path: Path, question: tuple[str, ...]) -> None:
    _, *modules = run("-c", SCRIPT, *question, folder=tmp_path).split()
    assert not {"remit.app.features", "remit.kernel.dispatch.registry"} & set(modules)
    features = [name for name in modules if name.startswith("remit.features.")]
    assert [name for name in features if name.endswith(".events")] == []


def test_an_idle_daemon_has_not_imported_what_few_requests_need(tmp_path: Path) -> None:
    modules = run("-c", DAEMON, folder=tmp_path).split()
    assert "remit.features.scan.text_view" in modules
    assert [name for name in SELDOM if name in modules] == []


def test_the_manifest_of_events_is_as_the_decorators_say(tmp_path: Path) -> None:
    """`python tools/lib/manifest.py` repairs it."""
    script = Path(__file__).parents[2] / "tools" / "lib" / "manifest.py"
    run(str(script), "--check", folder=tmp_path)
