"""The process guard: run a command that dies with who started it.

This file is a script: `guard.py PARENT OWNER USER COMMAND ARGS…`.

A daemon that is killed cannot end what it launched. So each process starts as this script, which
asks the kernel to be killed when its parent goes, and then becomes the command. It runs without the
packages around it and imports little, since every launch waits for it. USER is empty, or the ids of
another user and its groups: the process is theirs before it becomes the command.
"""

import os
import signal
import sys

MARK = "REMIT_LAUNCHED"
"""The variable that tells what was launched by whom: the id of the session, and the owner."""

_SET_DEATH_SIGNAL = 1
_SET_NO_NEW_PRIVILEGES = 38
_CANNOT_START = 127
_FIRST_OF_OURS = 3
_MOST_DESCRIPTORS = 65_536
"""As many as the daemon takes for itself."""


def process_guard(owner: str, user: str = "") -> tuple[str, ...]:
    """The words before a full command that make it die with this process, as another user's."""
    return (sys.executable, "-I", "-S", __file__, str(os.getpid()), owner, user)


def own_command() -> tuple[str, ...]:
    """The words that start this program from any folder."""
    import shutil  # noqa: PLC0415 - every start of a child would wait for it
    from pathlib import Path  # noqa: PLC0415 - the same

    found = shutil.which("remit")
    if found is not None:
        return (str(Path(found).absolute()),)
    # -P: a remit.py in the folder that a host was opened in must not become us.
    return (sys.executable, "-P", "-m", "remit")


def mark_of(session: int, owner: str) -> str:
    """The value of the mark."""
    return f"{session} {owner}"


def _die_with_parent(user: str) -> None:
    if sys.platform != "linux":
        _become(user)
        return
    import ctypes  # noqa: PLC0415 - a third of the cost of this script

    control = ctypes.CDLL(None).prctl
    _become(user)  # which makes the kernel forget the death signal
    if user and control(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        sys.exit(_CANNOT_START)
    control(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _become(user: str) -> None:
    """Give up all rights of who started this; a failure ends it."""
    if not user:
        return
    uid, gid, *groups = map(int, user.split(","))
    os.fchown(1, uid, gid)  # else the process could not open its own output by name
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)
    os.umask(0o077)


def main(parent: int, owner: str, user: str, command: list[str]) -> int:
    """Become the command, unless the parent is gone already; answers only when that fails."""
    _die_with_parent(user)
    if os.getppid() != parent:  # it died before the kernel was asked
        return _CANNOT_START
    os.environ[MARK] = mark_of(os.getpid(), owner)
    os.closerange(_FIRST_OF_OURS, _MOST_DESCRIPTORS)  # uvloop leaves copies of the standard ones
    try:
        os.execv(command[0], command)  # noqa: S606 - without a shell is what is wanted
    except OSError as error:
        why = error.strerror or error
        print(f"could not be started: {command[0]}: {why}", file=sys.stderr)  # noqa: T201
    return _CANNOT_START


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
