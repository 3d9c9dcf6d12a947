"""Child processes of the daemon: each is ended with everything that it started.

Promises:
- A child has a session of its own. When the block of `open_child` ends, all of that session has
  ended: asked by the end of its input, asked by a signal, killed.
- It has no descriptor of ours but the pipes that it was given, and the kernel ends it when we die,
  see `guard.py`.
- What a daemon could not end, because it was killed, is ended by `end_leftovers` at the next start.
"""

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from remit.kernel.processes.guard import MARK, mark_of

GRACE_SECONDS = 3.0
"""From the signal that asks a child to end until it is killed."""
_CHUNK = 65_536
_POLITE_SECONDS = 0.5
"""From the end of its input until it is asked by a signal."""
_PASSES = 5
"""A process can start another while we look for leftovers; the next pass finds it."""

OnOutput = Callable[[bytes], Awaitable[None]]
"""Told each piece that a child prints, and an empty one when there will be no more."""


class ChildProcess:
    """A running child; `open_child` makes one."""

    def __init__(self, process: Process, talk: ExitStack, *, stdin: int, stdout: int) -> None:
        self._process = process
        self._talk = talk
        self._stdin = stdin
        self._stdout = stdout

    @property
    def pid(self) -> int:
        """Its process id, which is that of its session too."""
        return self._process.pid

    async def wait(self) -> int:
        """Wait until it has ended by itself; answers its exit code."""
        return await self._process.wait()

    async def exit_code(self, within: float) -> int | None:
        """How it ended; None: it did not within some seconds."""
        with anyio.move_on_after(within):
            await self._process.wait()
        return self._process.returncode

    async def receive(self) -> bytes:
        """The next bytes that it prints in a dialogue; empty when there will be no more."""
        return await _read(self._stdout)

    async def send(self, data: bytes) -> None:
        """Write all of it to the input of a dialogue.

        Raises:
            OSError: it does not listen any more.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:  # it does not read: only then is there something to wait for
                await anyio.wait_writable(self._stdin)

    def end_input(self) -> None:
        """Tell it that nothing more comes."""
        self._talk.close()

    async def end(self, within: float) -> None:
        """End it and its session: end its input, wait, ask by a signal, wait, kill."""
        self.end_input()
        if self._stdin >= 0:
            await self.exit_code(_POLITE_SECONDS)
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            await self.exit_code(within)
        self._signal(signal.SIGKILL)
        await self._process.aclose()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


@asynccontextmanager
async def open_child(  # noqa: PLR0913 - what a process needs
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    on_output: OnOutput,
    is_dialogue: bool = False,
    stop_seconds: float = GRACE_SECONDS,
    drain_seconds: float = 0.0,
) -> AsyncGenerator[ChildProcess]:
    """A running command, which ends with the block.

    Args:
        command: a full path and the arguments, behind the words of `guard.process_guard`.
        env: all its variables.
        cwd: where it runs.
        on_output: told what it prints; of a dialogue, what it prints beside its answers.
        is_dialogue: it is written to and read from; else its input is empty.
        stop_seconds: from the signal that asks it to end until it is killed.
        drain_seconds: how long its output is read after its end. What left the session may hold it
            open for ever.

    Raises:
        OSError: it cannot be started.
        ValueError: its words or variables cannot be passed on.
    """
    stdin = stdout = -1
    with ExitStack() as ours, ExitStack() as talk:
        with ExitStack() as theirs:
            # Pipes of our own: with the loop's, a process ends only when nobody holds its output.
            output, output_end = _pipe(ours, theirs)
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output_end}
            streams["stderr"] = subprocess.STDOUT
            if is_dialogue:
                stdout, stdout_end = _pipe(ours, theirs)
                stdin_end, stdin = _pipe(theirs, talk)
                os.set_blocking(stdin, False)
                streams = {"stdin": stdin_end, "stdout": stdout_end, "stderr": output_end}
            for end in (output, stdout):
                if end >= 0:
                    os.set_blocking(end, False)
            # Shielded: a process that is half started would belong to nobody.
            with anyio.CancelScope(shield=True):
                # The kernel ends it with the thread that starts it: this must be the loop's.
                process = await anyio.open_process(
                    list(command), env=env, cwd=cwd, start_new_session=True, **streams
                )
        child = ChildProcess(process, talk, stdin=stdin, stdout=stdout)
        async with anyio.create_task_group() as reading:
            reading.start_soon(_hear, output, on_output)
            try:
                yield child
            finally:
                with anyio.CancelScope(shield=True):
                    await child.end(stop_seconds)
                reading.cancel_scope.deadline = anyio.current_time() + drain_seconds


def end_leftovers(owner: str) -> int:
    """Kill what an earlier daemon of the same owner started and could not end; answers how many.

    The kernel ends each child with its daemon, but not what that child had started itself, nor a
    command that runs with other rights than ours. These carry the mark of the owner. One that left
    the session it was started in went on purpose.
    """
    found: set[int] = set()
    for _ in range(_PASSES):
        ended = _end_once(owner)
        if ended <= found:
            break
        found |= ended
    return len(found)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


async def _read(end: int) -> bytes:
    while True:
        await anyio.wait_readable(end)
        try:
            return os.read(end, _CHUNK)
        except BlockingIOError:
            continue


async def _hear(output: int, on_output: OnOutput) -> None:
    while piece := await _read(output):
        await on_output(piece)
    await on_output(b"")


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
