"""What a look at an installation finds, and what `remit doctor` tells of the daemon.

Does it answer, could one start, what does it serve, and what does it say itself.
"""

import errno
import re
import shlex
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from remit.app.workbench import definition_files, read_standing
from remit.config.settings.home import Home, ipc_endpoint
from remit.config.settings.lock import mismatches, other_settings, running_pid
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, RemitError

State = Literal["fine", "warning", "broken"]
_TCP = re.compile(r"(?:tcp://)?(?P<host>\[[^\]]*\]|[^:]*):(?P<port>\d+)")
_NO_FAULT_OF_ITS_OWN = frozenset({"bad_key", "unauthorised"})
"""The daemon may be well: it is the key that is wrong."""


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    state: State
    message: str
    repair: str = ""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        return msgspec.structs.asdict(self)


def ask_daemon(settings: Settings, event: str) -> Any:
    """The answer of the daemon of this home to its operator.

    Raises:
        RemitError: of the client: it is not there, or does not let us in.
    """
    import remit_client.sync  # noqa: PLC0415 - zmq, only when a daemon runs

    with remit_client.sync.connect(home=str(settings.home)) as remit:
        return remit.call(event, timeout=5)


def told_by_daemon(settings: Settings, event: str) -> Any:
    """The same, or None when it does not answer: the look at the socket tells why."""
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415 - see above

    try:
        return ask_daemon(settings, event)
    except ClientError:
        return None


def nearest_there(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    return next(one for one in (path, *path.parents) if one.exists())


def look_at_daemon(settings: Settings) -> Iterator[Check]:
    """The socket, and what listens there."""
    home = Home(settings.home)
    try:
        endpoint = settings.endpoint or ipc_endpoint(home)
    except RemitError as error:
        yield Check("socket", "broken", error.message, error.hint)
        return
    pid = running_pid(home)
    if pid is not None:
        yield from _answering(settings, pid)
        return
    taken = list(_taken(settings))
    yield from taken
    if home.socket.exists() and not stat.S_ISSOCK(home.socket.lstat().st_mode):
        message = f"{home.socket} is no socket, and the daemon's must be there"
        where = shlex.quote(str(home.socket))
        yield Check("socket", "broken", message, f"mv {where} {where}.old")
    elif home.socket.exists():
        message = f"{home.socket} was left by a daemon that died; the next start removes it"
        yield Check("socket", "warning", message, "remit serve")
    elif not taken:
        yield Check("socket", "fine", f"no daemon runs; it would listen at {endpoint}")


def _answering(settings: Settings, pid: int) -> Iterator[Check]:
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415 - zmq

    try:
        health = ask_daemon(settings, "system:health")
    except ClientError as error:
        if error.code in _NO_FAULT_OF_ITS_OWN:
            message = f"a daemon runs (pid {pid}), and cannot be asked: {error.message}"
            yield Check("socket", "broken", message, error.hint or "name another with REMIT_KEY")
            return
        message = f"a daemon runs (pid {pid}) and does not answer: {error.message}"
        yield Check("socket", "broken", message, f"kill {pid}, then remit serve")
        return
    if health["disk_full"]:
        message = f"the disk of {settings.home} is full: only denials and revocations are written"
        yield Check("disk", "broken", message, "make room; the daemon goes on by itself")
    if health["stale"]:
        yield Check("socket", "warning", "the daemon refused newer definitions", "remit check")
    else:
        yield Check("socket", "fine", f"the daemon (pid {pid}) answers: {health['status']}")
    yield from _differences(settings, is_stale=health["stale"])


def _differences(settings: Settings, *, is_stale: bool) -> Iterator[Check]:
    """What somebody set or wrote here that the daemon does not run on."""
    served = mismatches(settings)
    for one in served:
        repair = "leave this folder, or stop the daemon and serve these: remit serve"
        yield Check("definitions", "broken", str(one), repair)
    for one in other_settings(settings):
        repair = f"start the daemon again, or take it out of {one.origin}"
        yield Check("settings", "broken", str(one), repair)
    if served or is_stale:
        return
    try:
        in_force = read_standing(settings).last_good
        if in_force is None or in_force.files.same_as(definition_files(settings)):
            return
    except (RemitError, DefinitionError):
        return  # told with the store, or with the definitions
    message = f"the definitions on disk are not those in force, of revision {in_force.revision}"
    yield Check("definitions", "broken", message, "remit plan, then remit reload")


def _taken(settings: Settings) -> Iterator[Check]:
    """Addresses at which a daemon that is started now could not listen."""
    for name in ("endpoint", "http"):
        found = _TCP.fullmatch(getattr(settings, name))
        reason = found and _why_not(found["host"].strip("[]"), int(found["port"]))
        if reason:
            where = f"{name} = {getattr(settings, name)} ({settings.origins[name]})"
            repair = f"stop what listens there, or choose another {name}"
            yield Check("port", "broken", f"nobody can listen at {where}: {reason}", repair)


def _why_not(host: str, port: int) -> str:
    """Why nobody can listen there now; empty when somebody can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("" if host == "*" else host, port))
    except OSError as error:
        taken = "another program listens there"
        return taken if error.errno == errno.EADDRINUSE else error.strerror or str(error)
    return ""
