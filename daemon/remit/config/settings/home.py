"""The state directory: where it is, what is in it, and whether it is safe to use.

Only its owner may look inside: the operator's secret key lies there. What is loose and ours is
tightened; what is not ours is refused with the command that repairs it. Whoever can put a store, a
list of servers or a pin there decides what agents may do, so each is looked at before it is used.
"""

import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from remit.errors import HomeError

_DIRECTORY_MODE = 0o700
_SECRET_MODE = 0o600
_PUBLIC_MODE = 0o644
_OTHERS = 0o077
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_STORE = ("", "-wal", "-shm", "-journal")
# sockaddr_un ends its path with a NUL: 108 bytes on Linux, 104 on macOS and the BSDs.
_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103


class HomeFault(msgspec.Struct, frozen=True):
    """Something about a home that is not as it must be.

    `mode` is what the daemon sets by itself; None means that a person has to act.
    """

    path: Path
    message: str
    repair: str
    mode: int | None = None


class Home(msgspec.Struct, frozen=True):
    """A state directory and the names of what lies in it. Making one touches nothing."""

    path: Path

    @property
    def socket(self) -> Path:
        """The daemon's ipc socket."""
        return self.path / "remit.sock"

    @property
    def database(self) -> Path:
        """The store."""
        return self.path / "remit.db"

    @property
    def door_of_operators(self) -> Path:
        """A socket that is kept for operators, when others fill the first."""
        return self.path / "op.sock"

    @property
    def lock(self) -> Path:
        """Held while a daemon runs here; holds its process id."""
        return self.path / "lock"

    @property
    def server_key(self) -> Path:
        """The daemon's secret key."""
        return self.path / "server.key"

    @property
    def server_public_key(self) -> Path:
        """What clients need to recognise the daemon."""
        return self.path / "server.pub"

    @property
    def operator_key(self) -> Path:
        """The operator's secret key."""
        return self.path / "operator.key"

    @property
    def endpoint(self) -> Path:
        """The file in which a running daemon says where it listens."""
        return self.path / "endpoint"

    @property
    def served(self) -> Path:
        """The file in which a running daemon says which definitions it serves."""
        return self.path / "served.json"

    @property
    def cache(self) -> Path:
        """What can be made again: vectors by the hash of their text."""
        return self.path / "cache"

    @property
    def audit(self) -> Path:
        """The directory of rows that left the audit log."""
        return self.path / "audit"

    @property
    def audit_head(self) -> Path:
        """What vouches for the end of the audit log, under a MAC of the server's key."""
        return self.path / "audit.head"

    @property
    def reserve(self) -> Path:
        """The room on the disk that is kept for denials and revocations."""
        return self.path / "reserve"

    @property
    def agents(self) -> Path:
        """The directory of the key files of launched agents."""
        return self.path / "agents"

    @property
    def launched(self) -> Path:
        """The directory in which each launched process has a folder, unless a setting names one."""
        return self.path / "launched"

    @property
    def upstreams(self) -> Path:
        """The directory of what is known and pinned about upstream servers."""
        return self.path / "upstreams"

    @property
    def keys(self) -> Path:
        """The directory of key pairs made for clients on this machine."""
        return self.path / "keys"

    @property
    def upstreams_file(self) -> Path:
        """The upstream MCP servers, unless the setting `upstreams` names another file."""
        return self.path / "upstreams.yaml"

    def __str__(self) -> str:
        return str(self.path)


def default_home(env: Mapping[str, str]) -> Path:
    """The state directory when nobody names one."""
    state = Path(env.get("XDG_STATE_HOME", ""))
    # The XDG specification: a relative path is invalid and has to be ignored.
    if not state.is_absolute():
        state = Path(env.get("HOME") or Path.home(), ".local", "state")
    return state / "remit"


def prepare_home(home: Home) -> tuple[str, ...]:
    """Make the directory, or tighten it; answers a line for each thing that was repaired.

    Raises:
        HomeError: it cannot be used; the hint is the command that repairs it.
    """
    if not is_there(home.path):
        _make(home)
    repaired = []
    for fault in inspect_home(home):
        if fault.mode is None:
            raise HomeError(fault.message, hint=fault.repair, details={"path": str(fault.path)})
        try:
            fault.path.chmod(fault.mode)
        except OSError as error:
            raise _unusable(fault.path, error) from error
        repaired.append(f"{fault.message}; did: {fault.repair}")
    return tuple(repaired)


def inspect_home(home: Home) -> Iterator[HomeFault]:
    """Look at the directory and its secrets without changing anything.

    Each fault is told before the next thing is looked at, so a caller may repair on the way.
    """
    if not is_there(home.path):
        return
    yield from _inspect_directory(home.path, what="the state directory", link_allowed=True)
    if not os.access(home.path, os.R_OK | os.W_OK | os.X_OK):
        yield HomeFault(home.path, f"{home.path}: cannot be written", "choose another with --home")
        return
    secrets = [home.server_key, home.operator_key]
    for folder in filter(is_there, (home.keys, home.agents)):
        yield from _inspect_directory(folder, what="the key directory", link_allowed=False)
        secrets += sorted(folder.iterdir())
    for path in secrets:
        if is_there(path):
            yield from inspect_secret(path)
    yield from _inspect_files(home)


def inspect_secret(path: Path) -> Iterator[HomeFault]:
    """Tell what is wrong with a file that holds a secret key; it must exist."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        message = f"{path}: a secret key must be a plain file, not a link or anything else"
        yield HomeFault(path, message, move_away(path))
    elif found.st_uid != os.geteuid():
        yield foreign(path, found.st_uid)
    elif found.st_mode & _OTHERS or not found.st_mode & stat.S_IRUSR:
        message = f"{path}: a secret key has mode {stat.S_IMODE(found.st_mode):04o}"
        yield HomeFault(path, message, f"chmod 600 {quoted(path)}", _SECRET_MODE)


def _inspect_files(home: Home) -> Iterator[HomeFault]:
    """Look at everything but secrets that remit itself keeps in a home."""
    for suffix in _STORE:
        yield from inspect_file(home.path / f"{home.database.name}{suffix}")
    for path in (home.lock, home.audit_head, home.reserve):
        yield from inspect_file(path)
    # What the daemon writes anew at each start, or compares with its secret key.
    for path in (home.server_public_key, home.endpoint, home.served):
        yield from inspect_file(path, mode=_PUBLIC_MODE)
    yield from inspect_file(home.upstreams_file, may_be_link=True)
    for path in (home.socket, home.door_of_operators):
        yield from inspect_socket(path)
    for path in (home.audit, home.upstreams, home.cache):
        yield from inspect_folder(path)


def is_socket_path(path: Path) -> bool:
    """Tell whether the system allows a path for a socket."""
    return len(os.fsencode(path)) <= _SOCKET_PATH_BYTES


def ipc_endpoint(home: Home) -> str:
    """The address of the daemon's socket in this home.

    Raises:
        HomeError: the path is longer than the system allows for a socket.
    """
    length = len(os.fsencode(home.socket))
    if not is_socket_path(home.socket):
        raise HomeError(
            f"{home.socket}: {length} bytes, but a socket's path may have {_SOCKET_PATH_BYTES}",
            hint="choose a shorter directory with --home, or listen on tcp: "
            "endpoint = 'tcp://127.0.0.1:7420'",
            details={"path": str(home.socket), "length": length, "limit": _SOCKET_PATH_BYTES},
        )
    return f"ipc://{home.socket}"


def _make(home: Home) -> None:
    try:
        home.path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(home.path, error) from error


def _inspect_directory(path: Path, *, what: str, link_allowed: bool) -> Iterator[HomeFault]:
    link = path.lstat()
    if stat.S_ISLNK(link.st_mode):
        if not link_allowed or link.st_uid != os.geteuid() or not path.exists():
            message = f"{path}: {what} is a link that cannot be trusted"
            yield HomeFault(path, message, f"rm {quoted(path)}")
            return
        path = path.resolve()
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        message = f"{path}: {what} is not a directory"
        yield HomeFault(path, message, move_away(path))
    elif found.st_uid != os.geteuid():
        yield foreign(path, found.st_uid)
    elif stat.S_IMODE(found.st_mode) & 0o777 != _DIRECTORY_MODE:
        message = f"{path}: {what} has mode {stat.S_IMODE(found.st_mode):04o}"
        yield HomeFault(path, message, f"chmod 700 {quoted(path)}", _DIRECTORY_MODE)


def _unusable(path: Path, error: OSError) -> HomeError:
    return HomeError(
        f"{path}: {error.strerror or error}",
        hint="choose another directory with --home, or make this one writable for you",
        details={"path": str(path)},
    )


def inspect_file(
    path: Path, *, may_be_link: bool = False, mode: int | None = None
) -> Iterator[HomeFault]:
    """Tell what is wrong with a file; one that is not there is fine.

    Args:
        path: the file.
        may_be_link: whether a link of ours may lead to it.
        mode: what it is given when others could write; None: somebody has to look at it first.
    """
    if not is_there(path):
        return
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) and may_be_link and found.st_uid == os.geteuid():
        if not path.exists():
            return  # reading it says so
        path = path.resolve()
        found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        message = f"{path}: this must be a plain file, not a link or anything else"
        yield HomeFault(path, message, move_away(path))
    else:
        yield from _inspect_rights(path, found, mode)


def check_file(path: Path, *, may_be_link: bool = False) -> None:
    """Refuse to use a file that somebody else has made, or could have changed.

    Raises:
        HomeError: it is so; the hint is the command that repairs it.
    """
    for fault in inspect_file(path, may_be_link=may_be_link):
        raise HomeError(fault.message, hint=fault.repair, details={"path": str(fault.path)})


def _inspect_rights(
    path: Path, found: os.stat_result, mode: int | None = None
) -> Iterator[HomeFault]:
    if found.st_uid != os.geteuid():
        yield foreign(path, found.st_uid)
    elif found.st_mode & _WRITABLE:
        message = f"{path}: others may have changed it, mode {stat.S_IMODE(found.st_mode):04o}"
        repair = f"chmod go-w {quoted(path)}"
        yield HomeFault(path, message, repair if mode else f"look at it, then: {repair}", mode)


def inspect_socket(path: Path) -> Iterator[HomeFault]:
    """Tell what is wrong with a socket."""
    if is_there(path) and (found := path.lstat()).st_uid != os.geteuid():
        yield foreign(path, found.st_uid)


def inspect_folder(path: Path) -> Iterator[HomeFault]:
    """Tell what is wrong with a directory and all that is in it."""
    if not is_there(path):
        return
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        message = f"{path}: this must be a directory, not a link or anything else"
        yield HomeFault(path, message, move_away(path))
        return
    yield from _inspect_rights(path, found)
    for inside in sorted(path.iterdir()):
        if inside.is_dir() and not inside.is_symlink():
            yield from inspect_folder(inside)
        else:
            yield from inspect_file(inside)


def foreign(path: Path, owner: int) -> HomeFault:
    """What to say of something that belongs to another user."""
    me = os.geteuid()
    message = f"{path}: belongs to user {owner}, but remit runs as user {me}"
    repair = f"sudo chown -R {me} {quoted(path)}   (or choose another directory with --home)"
    return HomeFault(path, message, repair)


def is_there(path: Path) -> bool:
    """Unlike `exists`, this sees a link that leads nowhere."""
    return os.path.lexists(path)


def move_away(path: Path) -> str:
    """The command that takes something out of the way."""
    return f"mv {quoted(path)} {quoted(Path(f'{path}.old'))}"


def quoted(path: Path) -> str:
    """A path as a shell reads it."""
    return shlex.quote(str(path))
