"""What a daemon launched and could not end, because it was killed.

The kernel ends each launched process with its daemon (`tether.py`), but not what that process had
started itself, nor a command that runs with other rights than ours. So the next start looks for
processes with the mark of this owner. One that left the session it was launched in went on purpose.
"""

import os
import signal
from pathlib import Path

from remit.runtime.tether import MARK, mark_of

_PASSES = 5
"""A process can start another while we look; the next pass finds it."""


def end_leftovers(owner: str) -> int:
    """Kill what is left; answers how many processes that were."""
    found: set[int] = set()
    for _ in range(_PASSES):
        ended = _end_once(owner)
        if ended <= found:
            break
        found |= ended
    return len(found)


def _end_once(owner: str) -> set[int]:
    ended = set()
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            handle = os.pidfd_open(pid)
        except (OSError, AttributeError):  # gone, or a system without such handles
            continue
        try:
            # The handle came first: a later process with this number cannot be hit.
            if _is_left(folder, pid, owner):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                ended.add(pid)
        except OSError:
            continue
        finally:
            os.close(handle)
    return ended


def _is_left(folder: Path, pid: int, owner: str) -> bool:
    mark = f"{MARK}={mark_of(os.getsid(pid), owner)}".encode()
    return mark in (folder / "environ").read_bytes().split(b"\0")
