"""Processes that die with the one who started them, and what is found of them later."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remit.kernel.processes import guard
from remit.kernel.processes.child import end_leftovers

WAIT = (sys.executable, "-c", "print('here', flush=True); import time; time.sleep(600)")


def guarded(parent: int, owner: Path, *command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-I", "-S", guard.__file__, str(parent), str(owner), "", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@contextmanager
def waiting(owner: Path) -> Generator["subprocess.Popen[str]"]:
    with guarded(os.getpid(), owner, *WAIT) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "here\n"
            yield process
        finally:
            process.kill()


def test_a_command_is_not_started_when_its_parent_is_gone_already(tmp_path: Path) -> None:
    with guarded(1, tmp_path, "/bin/echo", "started") as process:
        output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (127, "")


def test_a_command_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    with guarded(os.getpid(), tmp_path, str(tmp_path)) as process:
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 127
    assert output.startswith("could not be started: ")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_only_what_belongs_to_the_owner_is_ended(tmp_path: Path) -> None:
    with waiting(tmp_path / "mine") as mine, waiting(tmp_path / "yours") as yours:
        assert end_leftovers(str(tmp_path / "min")) == 0
        assert end_leftovers(str(tmp_path / "mine")) == 1
        assert mine.wait(timeout=20) == -signal.SIGKILL
        assert yours.poll() is None
