"""One daemon per state directory."""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from remit.config.home import Home
from remit.errors import HomeError

# `running_pid` of another process holds the lock for microseconds while it looks.
_ATTEMPTS = 5
_PAUSE = 0.01
_PID_BYTES = 20


@contextmanager
def hold_lock(home: Home) -> Iterator[None]:
    """Be the only daemon of this home, and clear away what a dead one left behind.

    The system gives the lock back when the process ends, however it ends.

    Raises:
        HomeError: another daemon runs here, or the lock cannot be taken.
    """
    try:
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(home, error) from error
    try:
        _take(descriptor, home)
        try:
            _write_pid(descriptor, str(os.getpid()))
        except OSError as error:  # a full disk
            raise _unusable(home, error) from error
        _remove_leftovers(home)
        try:
            yield
        finally:
            _write_pid(descriptor, "")
    finally:
        # The file stays: removing it would let two daemons lock two files of one name.
        os.close(descriptor)


def running_pid(home: Home) -> int | None:
    """The process id of the daemon that runs here, or None."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        pid = _read_pid(descriptor)
        return pid if pid and _is_held(descriptor) else None
    finally:
        os.close(descriptor)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _take(descriptor: int, home: Home) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE)
        except OSError as error:
            raise _unusable(home, error) from error
        else:
            return
    pid = _read_pid(descriptor)
    known = f" (pid {pid})" if pid else ""
    stop = f"stop it with 'kill {pid}', or " if pid else ""
    raise HomeError(
        f"{home.path}: a daemon already runs here{known}",
        hint=f"{stop}start this one in another directory with --home",
        details={"path": str(home.path), "pid": pid},
    )


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None


def _write_pid(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _remove_leftovers(home: Home) -> None:
    """Only the holder of the lock may do this: the socket might be alive."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(home.socket.lstat().st_mode):
            raise HomeError(
                f"{home.socket}: something that is no socket stands where the socket must be",
                hint=f"mv {home.socket} {home.socket}.old",
                details={"path": str(home.socket)},
            )
        home.socket.unlink()
    home.endpoint.unlink(missing_ok=True)
    home.served.unlink(missing_ok=True)


def _unusable(home: Home, error: OSError) -> HomeError:
    return HomeError(
        f"{home.lock}: {error.strerror or error}",
        hint="the state directory must be on a local disk, writable and not full; "
        "choose one with --home",
        details={"path": str(home.lock)},
    )
