"""A server that is a process: its streams, and the end of everything that it started.

Like launched agents it has a session of its own, so that all of it can be ended; the launcher that
the runtime puts before the command makes the kernel end it with us.
"""

import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import Process

from remit.features.upstreams.client.output import Chatter, Pace
from remit.features.upstreams.client.start import CannotStartError

_CHUNK = 65_536
_POLITE_SECONDS = 0.5
"""From the end of its input until it is asked by a signal."""
_ERROR_BYTES_PER_SECOND = 1_000_000


class Child:
    """A running server; `started` makes one."""

    def __init__(self, process: Process, *, stdin: int, stdout: int) -> None:
        self._process = process
        self._stdin = stdin
        self._stdout = stdout
        self._open = True

    async def receive(self) -> bytes:
        """The next bytes that it prints; empty when there will be no more."""
        while True:
            await anyio.wait_readable(self._stdout)
            try:
                return os.read(self._stdout, _CHUNK)
            except BlockingIOError:
                continue

    async def send(self, data: bytes) -> None:
        """Write all of it.

        Raises:
            OSError: it does not listen any more.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:  # it does not read: only then is there something to wait for
                await anyio.wait_writable(self._stdin)

    async def exit_code(self, within: float) -> int | None:
        """How it ended; None: it did not within some seconds."""
        with anyio.move_on_after(within):
            await self._process.wait()
        return self._process.returncode

    def end_input(self) -> None:
        """Tell it that nothing more comes."""
        if self._open:
            self._open = False
            os.close(self._stdin)

    async def end(self, within: float) -> None:
        """End it and all that it started: ask, wait, ask by a signal, wait, kill."""
        self.end_input()
        if await self.exit_code(_POLITE_SECONDS) is None:
            self._signal(signal.SIGTERM)
            await self.exit_code(within)
        self._signal(signal.SIGKILL)
        await self._process.aclose()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def started(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    errors: Chatter,
    stop_seconds: float,
) -> AsyncGenerator[Child]:
    """A running server, which ends with the block.

    Raises:
        CannotStartError: it cannot be started.
    """
    child_in, stdin = os.pipe()
    stdout, child_out = os.pipe()
    stderr, child_err = os.pipe()
    ours, theirs = (stdout, stderr), (child_in, child_out, child_err)
    for end in (stdin, *ours):
        os.set_blocking(end, False)
    try:
        # Shielded: a process that is half started would belong to nobody.
        with anyio.CancelScope(shield=True):
            # The kernel ends the process with the thread that starts it: this must be the loop's.
            process = await anyio.open_process(
                list(command),
                env=env,
                cwd=cwd,
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        _close(stdin, *ours, *theirs)
        raise CannotStartError(f"it cannot be started: {error}") from error
    _close(*theirs)
    child = Child(process, stdin=stdin, stdout=stdout)
    try:
        async with anyio.create_task_group() as reading:
            reading.start_soon(_hear, stderr, errors)
            try:
                yield child
            finally:
                with anyio.CancelScope(shield=True):
                    await child.end(stop_seconds)
                # What left the session may hold it open for ever.
                reading.cancel_scope.cancel()
    finally:
        _close(*ours)


async def _hear(stderr: int, errors: Chatter) -> None:
    pace = Pace(_ERROR_BYTES_PER_SECOND)
    while True:
        await anyio.wait_readable(stderr)
        try:
            piece = os.read(stderr, _CHUNK)
        except BlockingIOError:
            continue
        if not piece:
            errors.rest()
            return
        errors.hear(piece)
        await pace.spend(len(piece))


def _close(*ends: int) -> None:
    for end in ends:
        os.close(end)
