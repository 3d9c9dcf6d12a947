"""Processes of agents: started without a shell, watched, restarted by rule, ended with the agent.

Which commands may be started is the operator's configuration and nobody else's; the secret travels
in a file that only its owner reads, never among the arguments that everybody can list.
"""

import os
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import anyio
import msgspec
import structlog
from anyio.abc import ByteReceiveStream, Process, TaskGroup

from remit.errors import DeniedError, InvalidDataError, LimitError
from remit.model.launch import MAX_RESTARTS, Launch

log = structlog.get_logger()

MAX_PROCESSES = 256
OUTPUT_BYTES = 65_536
GRACE_SECONDS = 3.0
_PAUSE_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")

State = Literal["running", "restarting", "exited", "failed"]


class Status(msgspec.Struct):
    """How a process is doing."""

    state: State = "running"
    pid: int | None = None
    exit_code: int | None = None
    restarts: int = 0
    output: str = ""


class _Child:
    def __init__(self, launch: Launch, path: str, env: Mapping[str, str]) -> None:
        self.launch = launch
        self.path = path
        self.env = dict(env)
        self.status = Status()
        self.scope = anyio.CancelScope()
        self._output: deque[bytes] = deque()
        self._size = 0

    def keep(self, chunk: bytes) -> None:
        """Keep the newest output, up to the bound."""
        self._output.append(chunk[-OUTPUT_BYTES:])
        self._size += len(self._output[-1])
        while self._size > OUTPUT_BYTES:
            self._size -= len(self._output.popleft())

    def text(self) -> str:
        return b"".join(self._output).decode("utf-8", "replace")


class Launcher:
    """Starts and minds the processes of agents."""

    def __init__(
        self,
        tasks: TaskGroup,
        *,
        allowed: Iterable[str],
        identify: Callable[[str, str, str], Mapping[str, str]] | None = None,
        on_end: Callable[[str], None] = lambda _agent: None,
    ) -> None:
        """Make a launcher.

        Args:
            tasks: where the watching happens.
            allowed: the commands that the operator allows, as names on PATH or full paths.
            identify: keeps an agent's key pair where only its process finds it, and answers the
                variables that lead there.
            on_end: called with the agent's id when its process has ended for good.
        """
        self._tasks = tasks
        self._identify = identify
        self._allowed = {path for name in allowed if (path := shutil.which(name)) is not None}
        self._on_end = on_end
        self._children: dict[str, _Child] = {}

    def check(self, launch: Launch) -> str:
        """The full path of a command that may be started.

        Raises:
            DeniedError: the operator does not allow the command.
            InvalidDataError: something in the request cannot be used.
            LimitError: too many processes run already.
        """
        path = shutil.which(launch.command)
        if path is None or path not in self._allowed:
            raise DeniedError(
                f"the command {launch.command!r} is not allowed to be launched",
                reason="no_grant",
                hint="an operator lists it in the setting launch_commands",
            )
        if any("\0" in text for text in (*launch.args, *launch.env, *launch.env.values())):
            raise InvalidDataError("a NUL byte cannot be passed on", details={"path": "$.launch"})
        if any(name.startswith(("REMIT_", "LD_")) for name in launch.env):
            raise InvalidDataError(
                "names that start with REMIT_ or LD_ are not for a request to set",
                details={"path": "$.launch.env"},
            )
        if launch.cwd is not None and not Path(launch.cwd).is_dir():
            raise InvalidDataError("there is no such folder", details={"path": "$.launch.cwd"})
        if len(self._children) >= MAX_PROCESSES:
            raise LimitError("too many processes run already", details={"retry_after": 1.0})
        return path

    def start(self, agent: str, launch: Launch, identity: Mapping[str, str]) -> None:
        """Start a checked command; `identity` is what tells the process who it is."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        child = _Child(launch, self.check(launch), {**inherited, **launch.env, **identity})
        self._children[agent] = child
        self._tasks.start_soon(self._mind, agent, child)

    def launch(self, agent: str, launch: Launch, public_key: str, secret_key: str) -> None:
        """Start a checked command as an agent, with a key of its own."""
        identity = self._identify(agent, public_key, secret_key) if self._identify else {}
        self.start(agent, launch, identity)

    def end(self, agent: str) -> None:
        """End an agent's process, politely and then for certain; nobody waits for it."""
        child = self._children.pop(agent, None)
        if child is not None:
            child.scope.cancel()

    def status(self, agent: str) -> Status | None:
        """How an agent's process is doing, or None when it has none."""
        child = self._children.get(agent)
        return msgspec.structs.replace(child.status, output=child.text()) if child else None

    async def _mind(self, agent: str, child: _Child) -> None:
        try:
            with child.scope:
                await self._run_by_rule(agent, child)
        finally:
            log.info("agent_process_ended", agent=agent, exit_code=child.status.exit_code)
        if not child.scope.cancel_called:
            self._on_end(agent)

    async def _run_by_rule(self, agent: str, child: _Child) -> None:
        status = child.status
        while True:
            status.state = "running"
            try:
                status.exit_code = await self._run_once(child)
            except OSError as error:
                child.keep(f"could not be started: {error}\n".encode())
                status.exit_code = None
            failed = status.exit_code != 0
            again = child.launch.restart == "always" or (
                failed and child.launch.restart == "on_failure"
            )
            if not again or status.restarts >= min(child.launch.max_restarts, MAX_RESTARTS):
                status.state = "failed" if failed else "exited"
                return
            status.state = "restarting"
            pause = _PAUSE_SECONDS[min(status.restarts, len(_PAUSE_SECONDS) - 1)]
            status.restarts += 1
            log.info("agent_process_restarts", agent=agent, exit_code=status.exit_code)
            await anyio.sleep(pause)

    async def _run_once(self, child: _Child) -> int:
        command = [child.path, *child.launch.args]
        process = await anyio.open_process(
            command, env=child.env, cwd=child.launch.cwd, start_new_session=True
        )
        child.status.pid = process.pid
        try:
            async with anyio.create_task_group() as readers:
                for stream in (process.stdout, process.stderr):
                    if stream is not None:
                        readers.start_soon(_read, stream, child)
            return await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            child.status.pid = None


async def _read(stream: ByteReceiveStream, child: _Child) -> None:
    async for chunk in stream:
        child.keep(chunk)


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
