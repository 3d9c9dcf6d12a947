"""The stage of a drill: a folder with definitions, a real daemon on it, and one line of figures."""

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 30.0
"""Seconds until a drill gives up on a process; a healthy one needs a fraction of one."""
SHOWN = 5


class Stage:
    """A folder with a home, definitions and a remit.toml; no setting of the user reaches it."""

    def __init__(self, folder: Path, *, home: Path | None = None, log: Path | None = None) -> None:
        self.folder = folder
        self.home = home or folder / "home"
        self.log = log or folder / "log"
        self.compositions = folder / "compositions"
        self.compositions.mkdir(exist_ok=True)

    def configure(self, **settings: Any) -> None:
        """Write the settings; edits come in force only when the drill says so."""
        chosen: dict[str, Any] = {"catalogue": "capabilities.yaml", "compositions": "compositions"}
        chosen |= {"watch": False, "log_level": "warning"} | settings
        lines = [f"{name} = {_toml_of(value)}\n" for name, value in chosen.items()]
        (self.folder / "remit.toml").write_text("".join(lines), encoding="utf-8")

    def catalogue(self, text: str) -> None:
        """Write the capabilities."""
        (self.folder / "capabilities.yaml").write_text(text, encoding="utf-8")

    def profile(self, name: str, text: str) -> None:
        """Write a profile."""
        (self.compositions / f"{name}.yaml").write_text(f"name: {name}\n{text}", encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """The environment without anything that could reach a real installation."""
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("REMIT_", "XDG_"))}
        return kept | {"HOME": str(self.folder)}

    def start(self, program: Sequence[str] = ("-m", "remit")) -> "Daemon":
        """Start the daemon and wait for its ready line.

        Raises:
            NotReadyError: it ended, or was silent for too long.
        """
        with self.log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, *program, "serve", "--json", "--home", str(self.home)],
                cwd=self.folder,
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=log,
            )
        try:
            return Daemon(process)
        except NotReadyError as error:
            error.add_note(self.said())
            raise

    def said(self) -> str:
        """The end of what the daemon wrote to its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command beside the daemon, to its end."""
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "remit", *arguments, "--json", "--home", str(self.home)],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def audit_problem(self, *options: str) -> str:
        """What `remit audit verify` finds wrong; empty when the chain is whole."""
        done = self.run("audit", "verify", *options)
        if done.returncode:
            return f"remit audit verify ends with {done.returncode}: {done.stdout}{done.stderr}"
        return ""


def _toml_of(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_of, value)) + "]"
    return json.dumps(value)


class NotReadyError(Exception):
    """A daemon that did not come up; `code` is how it ended, `printed` what it said."""

    def __init__(self, code: int | None, printed: str = "") -> None:
        super().__init__(f"the daemon did not start: exit code {code} {printed}")
        self.code = code
        self.printed = printed


class Daemon:
    """A daemon that said it was ready."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        if process.stdout is None:
            raise NotReadyError(None)
        readable, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if readable else b""
        if not line.startswith(b'{"ready":true'):
            rest = process.stdout.read() if line else b""  # a complaint, so it has ended
            raise NotReadyError(self.wait(), (line + rest).decode())
        self.ready: dict[str, Any] = json.loads(line)

    def terminate(self) -> tuple[int, float]:
        """Ask it to end; answers its exit code and the seconds it took. -9: it did not listen."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.wait(), time.monotonic() - began

    def wait(self) -> int:
        """Wait for the end, but not for ever."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        self.kill()
        return code

    def kill(self) -> int:
        """End it without a word, if it still lives."""
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextmanager
def new_folder() -> Generator[Path]:
    """A folder near the root: the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="remit-") as folder:
        yield Path(folder)


def arguments(about: str, **options: float | str) -> argparse.Namespace:
    """Read the command line: `--json`, and an option for each default, of its type."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def report(figures: dict[str, Any], problems: Sequence[object], *, as_json: bool) -> int:
    """Print the one line, and the first problems beside it; answers the exit code."""
    figures = figures | {"problems": len(problems)}
    if as_json:
        print(json.dumps(figures))
    else:
        print(" ".join(f"{name}={value}" for name, value in figures.items()))
    for problem in problems[:SHOWN]:
        print(problem, file=sys.stderr)
    return 1 if problems else 0
