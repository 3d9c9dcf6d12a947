"""One process, from its start to the end of everything that it started.

It has a session of its own, an empty input, and one pipe for all its output. It dies with us, see
`tether.py`.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
from anyio.abc import Process

from remit.kernel.processes.tether import MARK, mark_of

GRACE_SECONDS = 3.0
_CHUNK = 65_536


async def run(
    command: Sequence[str],
    *,
    tether: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    on_start: Callable[[int], None],
    on_output: Callable[[bytes], None],
) -> int:
    """Run a command to its end, and end it when this is cancelled; answers its exit code.

    Args:
        command: a full path and the arguments.
        tether: the words before it that make it die with us.
        env: all its variables.
        cwd: where it runs.
        on_start: called with the process id.
        on_output: called with each piece of output.

    Raises:
        OSError: it could not be started.
    """
    with _pipe() as (output, write_end):
        try:
            # The kernel ends the process with the thread that starts it: this must be the loop's.
            process = await anyio.open_process(
                [*tether, *command],
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            os.close(write_end)
        on_start(process.pid)
        return await _mind(process, output, on_output)


async def _mind(process: Process, output: int, on_output: Callable[[bytes], None]) -> int:
    async with anyio.create_task_group() as reading:
        reading.start_soon(_read, output, on_output)
        try:
            code = await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
        # What left the session may hold the output open for ever.
        reading.cancel_scope.deadline = anyio.current_time() + GRACE_SECONDS
    return code


@contextmanager
def _pipe() -> Generator[tuple[int, int]]:
    """A pipe of our own: with the loop's, a process ends only when nobody holds its output."""
    output, write_end = os.pipe()
    os.set_blocking(output, False)
    try:
        yield output, write_end
    finally:
        os.close(output)


async def _read(output: int, on_output: Callable[[bytes], None]) -> None:
    while True:
        await anyio.wait_readable(output)
        try:
            chunk = os.read(output, _CHUNK)
        except BlockingIOError:
            continue
        if not chunk:
            return
        on_output(chunk)


async def _end(process: Process) -> None:
    """The whole session of the process: what it started ends with it."""
    if process.returncode is None:
        _signal(process.pid, signal.SIGTERM)
        with anyio.move_on_after(GRACE_SECONDS):
            await process.wait()
    _signal(process.pid, signal.SIGKILL)
    await process.aclose()


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


# What a daemon launched and could not end, because it was killed.
#
# The kernel ends each launched process with its daemon (`tether.py`), but not what that process
# had started itself, nor a command that runs with other rights than ours. So the next start looks
# for processes with the mark of this owner. One that left the session it was launched in went on
# purpose.


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
