"""Run a command that dies with the one who started it: `tether.py PARENT OWNER COMMAND ARGS…`.

A daemon that is killed cannot end what it launched. So each process starts as this script, which
asks the kernel to be killed when its parent goes, and then becomes the command. It runs without the
packages around it and imports little, since every launch waits for it.
"""

import os
import signal
import sys

MARK = "REMIT_LAUNCHED"
"""The variable that tells what was launched by whom: the id of the session, and the owner."""

_SET_DEATH_SIGNAL = 1
_CANNOT_START = 127


def tethered(owner: str) -> tuple[str, ...]:
    """The words before a full command that make it die with this process."""
    return (sys.executable, "-I", "-S", __file__, str(os.getpid()), owner)


def mark_of(session: int, owner: str) -> str:
    """The value of the mark."""
    return f"{session} {owner}"


def _die_with_parent() -> None:
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - a third of the cost of this script

    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def main(parent: int, owner: str, command: list[str]) -> int:
    """Become the command, unless the parent is gone already; answers only when that fails."""
    _die_with_parent()
    if os.getppid() != parent:  # it died before the kernel was asked
        return _CANNOT_START
    os.environ[MARK] = mark_of(os.getpid(), owner)
    try:
        os.execv(command[0], command)  # noqa: S606 - without a shell is what is wanted
    except OSError as error:
        why = error.strerror or error
        print(f"could not be started: {command[0]}: {why}", file=sys.stderr)  # noqa: T201
    return _CANNOT_START


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
