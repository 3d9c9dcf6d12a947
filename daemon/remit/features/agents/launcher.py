"""Processes of agents: started without a shell, watched, restarted by rule, ended with the agent.

Which commands may be started is the operator's configuration and nobody else's; the secret travels
in a file that only its owner reads, never among the arguments that everybody can list. What to
start is asked for anew at each start, so that it fits what the agent holds by then. A process has
few variables, a folder of its own, and no descriptor of ours but its output.

A folder ends with its agent, so that a later agent of the same name finds nothing in it. Ending
takes a moment, however much a process wrote: the folder is renamed, and removed beside the loop.
"""

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
import msgspec
import structlog
from anyio.abc import TaskGroup

from remit.config.definitions.launchers import Commands
from remit.config.settings.launch_user import LaunchUser
from remit.errors import InvalidDataError, LimitError, RemitError
from remit.kernel.processes.child import GRACE_SECONDS, open_child
from remit.kernel.processes.guard import process_guard
from remit.model.event import Service
from remit.model.launch import MAX_RESTARTS, SETTABLE, Launch
from remit_client.keys import Key, save_key

log = structlog.get_logger()
MAX_PROCESSES = 256
OUTPUT_BYTES = 65_536
_PAUSE_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
_SETTABLE = re.compile(SETTABLE)
_COULD_NOT = b"could not be started: %s\n"
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")
_OUR_OWN = ("HOME", "TMPDIR")
"""Inherited as well where the process is the same user's."""
Recipe = Callable[[], Launch]
"""Answers what to start now; may raise what keeps it from being started."""
State = Literal["running", "restarting", "exited", "failed"]
_ENDED = ".ended-"


class Status(msgspec.Struct):
    """The state of a process."""

    state: State = "running"
    pid: int | None = None
    exit_code: int | None = None
    restarts: int = 0
    output: str = ""


class _Child:
    def __init__(self, recipe: Recipe, identity: Mapping[str, str]) -> None:
        self.recipe = recipe
        self.identity = identity
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

    async def hear(self, chunk: bytes) -> None:
        if chunk:
            self.keep(chunk)

    def text(self) -> str:
        return b"".join(self._output).decode("utf-8", "replace")


class Launcher(Service):
    """Starts and minds the processes of agents."""

    def __init__(
        self,
        tasks: TaskGroup,
        *,
        commands: Commands,
        folders: "LaunchFolders",
        identify: Callable[[str, str, str], Mapping[str, str]] | None = None,
        find: Callable[[str, Mapping[str, str]], Launch] | None = None,
        on_end: Callable[[str], None] = lambda _agent: None,
    ) -> None:
        """Make a launcher.

        Args:
            tasks: where the watching happens.
            commands: the commands that the operator allows.
            folders: where the processes live.
            identify: keeps an agent's key pair where only its process finds it, and answers the
                variables that lead there.
            find: what to start for an agent now, given those variables.
            on_end: called with the agent's id when its process has ended for good.
        """
        self._tasks = tasks
        self._folders = folders
        self._identify = identify
        self._find = find
        self.commands = commands
        self._on_end = on_end
        self._children: dict[str, _Child] = {}
        for folder in folders.left():
            tasks.start_soon(_remove, folder)

    def check(self, launch: Launch) -> str:
        """The full path of a command that may be started.

        Raises:
            DeniedError: the operator does not allow the command.
            UnavailableError: it is not installed.
            InvalidDataError: something in it cannot be used.
            LimitError: too many processes run already.
        """
        path = self._path_of(launch)
        self._check_room()
        return path

    def _check_room(self) -> None:
        if len(self._children) >= MAX_PROCESSES:
            raise LimitError("too many processes run already", details={"retry_after": 1.0})

    def _path_of(self, launch: Launch) -> str:
        if bool(launch.command) == bool(launch.ready):
            raise InvalidDataError(
                "a launch has either a command or the name of a ready launcher",
                hint="an empty object starts nothing",
                details={"path": "$.launch"},
            )
        path = self.commands.path_of(launch)
        if any("\0" in text for text in (*launch.args, *launch.env, *launch.env.values())):
            raise InvalidDataError("a NUL byte cannot be passed on", details={"path": "$.launch"})
        if not all(map(_SETTABLE.fullmatch, launch.env)):
            raise InvalidDataError(
                "the environment has a name that cannot be set",
                hint="write letters, digits and _, and neither REMIT_ nor LD_ at the start",
                details={"path": "$.launch"},
            )
        if launch.cwd is not None and not Path(launch.cwd).is_dir():
            message = f"there is no folder {launch.cwd!r} to run {launch.starts!r} in"
            raise InvalidDataError(message, details={"path": "$.launch"})
        return path

    def start(self, agent: str, recipe: Recipe, identity: Mapping[str, str]) -> None:
        """Start a process; `identity` is what tells it who it is.

        Why a process could not be started is in its status.

        Raises:
            LimitError: too many processes run already.
        """
        self._check_room()
        child = _Child(recipe, identity)
        self._children[agent] = child
        self._tasks.start_soon(self._mind, agent, child)

    def launch(self, agent: str, public_key: str, secret_key: str) -> None:
        """Start the process of an agent, with a key of its own."""
        if self._identify is None or self._find is None:
            raise InvalidDataError("no processes are started here")
        identity = self._identify(agent, public_key, secret_key)
        self.start(agent, partial(self._find, agent, identity), identity)

    def end(self, agent: str) -> None:
        """End an agent's process, politely and then for certain; nobody waits for it."""
        child = self._children.pop(agent, None)
        if child is not None:
            child.scope.cancel()
        ended = self._folders.end(agent)
        if ended is not None:
            self._tasks.start_soon(_remove, ended)

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
                launch = child.recipe()
                path = self._path_of(launch)
            except (RemitError, msgspec.MsgspecError) as error:
                child.keep(_COULD_NOT % str(error).encode())
                status.state, status.exit_code = "failed", None
                return
            try:
                status.exit_code = await self._run_once(agent, child, launch, path)
            except (OSError, ValueError, RemitError) as error:
                child.keep(_COULD_NOT % str(error).encode())
                status.exit_code = None
            failed = status.exit_code != 0
            again = launch.restart == "always" or (failed and launch.restart == "on_failure")
            if not again or status.restarts >= min(launch.max_restarts, MAX_RESTARTS):
                status.state = "failed" if failed else "exited"
                return
            status.state = "restarting"
            pause = _PAUSE_SECONDS[min(status.restarts, len(_PAUSE_SECONDS) - 1)]
            status.restarts += 1
            log.info("agent_process_restarts", agent=agent, exit_code=status.exit_code)
            await anyio.sleep(pause)

    async def _run_once(self, agent: str, child: _Child, launch: Launch, path: str) -> int:
        folders = self._folders
        names = (*_INHERITED, *(() if folders.user else _OUR_OWN))
        inherited = {name: os.environ[name] for name in names if name in os.environ}
        own = folders.user.variables if folders.user else {}
        folder = folders.folder(agent)
        try:
            async with open_child(
                [*folders.guard, path, *launch.args],
                env={**inherited, **own, **launch.env, **child.identity},
                cwd=launch.cwd or str(folder),
                on_output=child.hear,
                drain_seconds=GRACE_SECONDS,
            ) as process:
                child.status.pid = process.pid
                return await process.wait()
        finally:
            child.status.pid = None


async def _remove(folder: Path) -> None:
    await anyio.to_thread.run_sync(remove_folder, folder, abandon_on_cancel=True)


class LaunchFolders:
    """The folders in one directory of the daemon's, and whose processes live there."""

    def __init__(self, directory: Path, *, owner: str = "", user: LaunchUser | None = None) -> None:
        """Describe them.

        Args:
            directory: where the folders are.
            owner: whom the processes belong to, so that a later start finds what is left of them.
            user: whom they run as; None: as us.
        """
        self._directory = directory
        self.owner = owner
        self.user = user

    @property
    def guard(self) -> tuple[str, ...]:
        """The words before a command that make it die with us, and theirs whose it is to be."""
        return process_guard(self.owner, self.user.ids if self.user else "")

    def folder(self, agent: str) -> Path:
        """The folder of an agent, made when it is not there.

        Raises:
            InvalidDataError: something else is there, or it cannot be made.
        """
        path = self._directory / agent
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
            if self.user is not None and found.st_uid == os.geteuid():
                os.chown(path, self.user.uid, self.user.gid, follow_symlinks=False)
                found = path.lstat()
        except OSError as error:
            message = f"{path} cannot be made: {error.strerror or error}"
            raise InvalidDataError(message, hint="see the setting launch_dir") from error
        owner = os.geteuid() if self.user is None else self.user.uid
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
            raise InvalidDataError(f"{path} is not the folder of a launched process")
        return path

    def give_key(self, path: Path, key: Key) -> Path:
        """Where a process finds its key: `path`, or a copy that its user may read."""
        if self.user is None:
            return path
        copy = self._key_of(key.name)
        save_key(copy, key)
        os.chown(copy, self.user.uid, self.user.gid, follow_symlinks=False)
        return copy

    def end(self, agent: str) -> Path | None:
        """Take the folder and the key of an agent away; answers what is still to be removed."""
        self._key_of(agent).unlink(missing_ok=True)
        ended = self._directory / f"{_ENDED}{agent}-{os.urandom(4).hex()}"
        try:
            (self._directory / agent).rename(ended)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("launch_folder_not_removed", agent=agent, problem=str(error))
            return None
        return ended

    def left(self) -> list[Path]:
        """What an earlier run renamed and did not remove."""
        return sorted(self._directory.glob(f"{_ENDED}*"))

    def _key_of(self, agent: str) -> Path:
        # No name of an agent has a dot, so this is no folder of one.
        return self._directory / f"{agent}.key"


def remove_folder(path: Path) -> None:
    """Remove a folder that was ended; what is left of it goes at the next start."""
    import shutil  # noqa: PLC0415 - half a megabyte of compressors, and most agents have no folder

    shutil.rmtree(path, ignore_errors=True)
