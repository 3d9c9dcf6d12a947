"""A disk that can be full: a small tmpfs with a filler, or a limit on the size of files."""

import resource
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from stage import Daemon

SIZE = "12m"
BLOCK = 65_536


class Disk:
    """A disk that can be full: a tmpfs with a filler, or a limit on the size of files."""

    def __init__(self, way: str, home: Path) -> None:
        self.way = way
        self._filler = home / "filler"

    def fill(self, daemon: Daemon) -> None:
        """Leave not one byte."""
        if self.way == "limit":
            _limit(daemon, 1)
            return
        with self._filler.open("ab", buffering=0) as filler:
            size = BLOCK
            while size:
                try:
                    filler.write(b"\0" * size)
                except OSError:
                    size //= 2

    def free(self, daemon: Daemon) -> None:
        """Give the room back."""
        if self.way == "limit":
            _limit(daemon, None)
        self._filler.unlink(missing_ok=True)


def _limit(daemon: Daemon, size: int | None) -> None:
    """Let no file of the daemon grow beyond `size`; None: as large as it may."""
    pid, kind = daemon.process.pid, resource.RLIMIT_FSIZE
    _, most = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (most if size is None else size, most))


@contextmanager
def small_disk(way: str, home: Path) -> Generator[Disk]:
    """Mount a small file system at the home, if that is possible and nobody wants the other way."""
    home.mkdir(mode=0o700)
    is_mounted = way != "limit" and _mount(home)
    if way == "tmpfs" and not is_mounted:
        raise SystemExit("no tmpfs can be mounted here: that takes root; try --way limit")
    try:
        yield Disk("tmpfs" if is_mounted else "limit", home)
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(home)], check=False)  # noqa: S603, S607


def _mount(home: Path) -> bool:
    if shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "remit-drill", str(home)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
