"""Runs pip or uv and says how far it is: `python progress.py LOCK VENV COMMAND...`.

A terminal has one line that is written again every second, anything else a line every ten seconds
and one for each part of the work. What the command prints is shown when it fails. Its exit code is
the code of this script.
"""

import contextlib
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_TICK = 1.0
_SELDOM = 10.0
_FETCHED = re.compile(r"\s*(?:Downloading|Using cached) \S+ \(([\d.]+) ([kMG]B)\)")
_MEGABYTES = {"kB": 0.001, "MB": 1.0, "GB": 1000.0}
_NAMED = re.compile(r"(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9._-]+)")
_NOISE = re.compile(r"\s*(Collecting|Requirement|Downloading|Using cached|Ignoring|Looking)")


class Progress:
    """How far an installation is, from what pip says and what lies in the environment."""

    def __init__(self, lock: Path, venv: Path) -> None:
        self.total = len(re.findall(r"^[A-Za-z0-9._-]+==", lock.read_text(), re.MULTILINE))
        self._venv = venv
        self._before = self._installed()
        self._got: set[str] = set()
        self._megabytes = 0.0
        self._installs = False

    def read(self, line: str) -> None:
        """Take a line of pip."""
        words = line.split()
        if words[:1] == ["Ignoring"]:  # for other machines
            self.total -= 1
        elif found := _NAMED.match(line):
            self._got.add(found[1])
        elif words[:2] == ["Installing", "collected"]:
            self._installs = True
        elif found := _FETCHED.match(line):
            self._megabytes += float(found[1]) * _MEGABYTES[found[2]]

    def __str__(self) -> str:
        done = self._installed()
        if self._installs or done > self._before:
            return f"installing packages: {min(done, self.total)} of {self.total}"
        size = f", {self._megabytes:.0f} MB" if self._megabytes else ""
        return f"getting packages: {len(self._got)} of {self.total}{size}"

    def _installed(self) -> int:
        return len(list(self._venv.glob("lib/python*/site-packages/*.dist-info")))

    @property
    def part(self) -> str:
        """The part of the work that is being done."""
        return str(self).partition(":")[0]


class Teller:
    """Writes what changed to standard error, as often as its reader can bear."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._began = self._told = time.monotonic()
        self._part = ""

    def tell(self, progress: Progress) -> None:
        """Write a line if it is time for one."""
        now = time.monotonic()
        is_due = now - self._told >= (_TICK if self._live else _SELDOM)
        if not is_due and progress.part == self._part:
            return
        self._part, self._told = progress.part, now
        text = f"remit: {progress} ({now - self._began:.0f} s)"
        sys.stderr.write(f"\r{text}\033[K" if self._live else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Take the last line away: the next one says more."""
        if self._live:
            sys.stderr.write("\r\033[K")


def lines_of(work: "subprocess.Popen[bytes]") -> Iterator[str]:
    """What a process prints, line by line, and an empty line every second."""
    assert work.stdout is not None  # noqa: S101 - it was asked for
    number = work.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(number, selectors.EVENT_READ)
        rest = b""
        while True:
            if not selector.select(_TICK):
                yield ""
            elif chunk := os.read(number, 65536):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in whole)
            else:
                return


def main() -> int:
    """Run, tell, and answer the exit code."""
    progress, teller = Progress(Path(sys.argv[1]), Path(sys.argv[2])), Teller()
    said: list[str] = []
    work = subprocess.Popen(  # noqa: S603 - the command of prepare.sh
        sys.argv[3:],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        close_fds=False,  # it holds the lock of prepare.sh: nobody may begin while it still runs
    )
    with work, contextlib.suppress(KeyboardInterrupt):
        for line in lines_of(work):
            progress.read(line)
            said += [] if not line.strip() or _NOISE.match(line) else [line]
            teller.tell(progress)
    teller.end()
    if work.returncode:
        sys.stderr.write("\n".join([*said[-40:], ""]))
    return work.returncode


if __name__ == "__main__":
    sys.exit(main())
