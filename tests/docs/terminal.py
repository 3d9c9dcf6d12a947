"""A newcomer's terminal: an empty home, the checkout beside it, and the commands of one page."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.pages import ROOT

import remit_client.sync

_SERVE = re.compile(r"(remit|\./tools/run) serve( .*)?")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_SECONDS = 30
_PORT = "7421"
"""The port of the pages; whoever reads them may have a daemon there."""


class Terminal:
    """Runs commands one after the other, as `sh` would; a daemon stays until the page ends."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "remit"
        self._code = 0
        self._daemon: subprocess.Popen[str] | None = None
        self._environment = _environment(home)
        self._port = _free_port()

    def run(self, command: str) -> tuple[int, str]:
        """Run one line; answers its exit code and what it printed, as the pages would show it."""
        command = command.replace(_PORT, self._port)
        if _SERVE.fullmatch(command):
            return 0, self._plain(self._serve(command))
        if "kill -HUP" in command:
            return self._reload(command)
        return self._run(command)

    def _run(self, command: str) -> tuple[int, str]:
        where = self.home / ".cwd"
        script = f"(exit {self._code})\n{command}\ncode=$?\npwd >{where}\nexit $code\n"
        done = subprocess.run(  # noqa: S603 - the commands of our own pages
            ["/bin/sh", "-c", script],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        self._code = done.returncode
        self.folder = Path(where.read_text(encoding="utf-8").strip())
        return done.returncode, self._plain(done.stdout)

    def _serve(self, command: str) -> str:
        assert self._daemon is None, "a page starts one daemon"
        with (self.home / "serve.log").open("w", encoding="utf-8") as log:
            self._daemon = subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._daemon.stdout is not None
        line = self._daemon.stdout.readline()
        assert line, (self.home / "serve.log").read_text(encoding="utf-8")
        return line

    def _reload(self, command: str) -> tuple[int, str]:
        """Send the signal and wait until the daemon has acted on it: a reader is not that fast."""
        before = self._state()
        outcome = self._run(command)
        deadline = time.monotonic() + _SECONDS
        while self._state() == before:
            assert time.monotonic() < deadline, "the daemon did not reload"
        return outcome

    def _state(self) -> tuple[int, bool]:
        with remit_client.sync.connect(home=self.home / ".local" / "state" / "remit") as remit:
            health = remit.call("system:health")
            return health["revision"], health["stale"]

    def _plain(self, text: str) -> str:
        return _ANSI.sub("", text).replace(f"{ROOT}/", "").replace(self._port, _PORT)

    def close(self) -> None:
        """Stop the daemon, if the page started one; it must end well."""
        if self._daemon is None:
            return
        assert self._daemon.stdout is not None
        with self._daemon, self._daemon.stdout:
            self._daemon.terminate()
            assert self._daemon.wait(_SECONDS) == 0


def _free_port() -> str:
    """A port of five digits, which stands in no other number of a page."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


def _environment(home: Path) -> dict[str, str]:
    ours = ("REMIT_", "PYTHON", "XDG_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    paths = f"{ROOT / 'daemon'}{os.pathsep}{ROOT / 'socket_client'}"
    path = f"{home / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return kept | {"HOME": str(home), "PATH": path, "PYTHONPATH": paths, "NO_COLOR": "1"}


@contextmanager
def open_terminal() -> Generator[Terminal]:
    """A terminal in a home of its own; short, because a socket's path may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="remit-", dir="/tmp") as folder:
        home = Path(folder)
        checkout = home / "remit"
        (checkout / "tools").mkdir(parents=True)
        (home / "bin").mkdir()
        _script(checkout / "tools" / "run", "-P -m remit", invoked_as="$0")
        _script(home / "bin" / "remit", "-P -m remit", invoked_as="remit")
        _script(home / "bin" / "python", "")
        if shutil.which("curl") is None:
            _script(home / "bin" / "curl", str(ROOT / "tests" / "docs" / "curl.py"))
        (checkout / ".venv" / "bin").mkdir(parents=True)
        _script(checkout / ".venv" / "bin" / "python", "")
        shutil.copy(ROOT / "capabilities.yaml", checkout)
        shutil.copytree(ROOT / "compositions", checkout / "compositions")
        terminal = Terminal(home)
        try:
            yield terminal
        finally:
            terminal.close()


def _script(path: Path, arguments: str, *, invoked_as: str = "") -> None:
    said = f'export REMIT_INVOKED_AS="{invoked_as}"\n' if invoked_as else ""
    run = f'exec {sys.executable} {arguments} "$@"\n'
    path.write_text(f"#!/bin/sh\n{said}{run}", encoding="utf-8")
    path.chmod(0o755)
