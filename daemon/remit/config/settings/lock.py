"""One daemon per state directory."""

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from remit.config.settings.home import Home, check_file
from remit.config.settings.table import SETTINGS, Origin, Settings
from remit.errors import HomeError, SettingsError
from remit.model.launch import LaunchEntry

# `running_pid` of another process holds the lock for microseconds while it looks.
_ATTEMPTS = 5
_PAUSE = 0.01
_PID_BYTES = 20
_SHARED = ("catalogue", "compositions", "handlers", "handler_paths")
"""These belong together: whoever names one means another set of definitions."""
_APART = ("upstreams", "capability_dirs", "card_dirs", "workspace_cards")
"""These are written down apart from definitions, and are taken over one by one."""
_READ: dict[type, Callable[[Any], Any]] = {str: Path, list: lambda paths: tuple(map(Path, paths))}


class DaemonRecord(msgspec.Struct, frozen=True):
    """The settings of a daemon that decide what its definitions mean."""

    catalogue: str | None
    compositions: str | None
    handlers: tuple[str, ...]
    handler_paths: tuple[str, ...]
    extensions: tuple[str, ...] = ()
    """The modules of extensions that are loaded now."""
    upstreams: str | None = None
    settings: dict[str, Any] = {}
    """All the other settings, for whoever compares."""


class Mismatch(msgspec.Struct, frozen=True):
    """A setting that means something else here than to the running daemon."""

    name: str
    here: str
    origin: str
    daemon: str

    def __str__(self) -> str:
        return f"{self.name} is {self.here} here ({self.origin}), and {self.daemon} for the daemon"


@contextmanager
def hold_lock(home: Home) -> Iterator[None]:
    """Be the only daemon of this home, and clear away what a dead one left behind.

    The system gives the lock back when the process ends, however it ends.

    Raises:
        HomeError: another daemon runs here, or the lock cannot be taken.
    """
    try:
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(home, error) from error
    try:
        _take(descriptor, home)
        try:
            _write_pid(descriptor, str(os.getpid()))
        except OSError as error:  # a full disk
            raise _unusable(home, error) from error
        _remove_leftovers(home)
        try:
            yield
        finally:
            _write_pid(descriptor, "")
    finally:
        # The file stays: removing it would let two daemons lock two files of one name.
        os.close(descriptor)


def running_pid(home: Home) -> int | None:
    """The process id of the daemon that runs here, or None."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        pid = _read_pid(descriptor)
        return pid if pid and _is_held(descriptor) else None
    finally:
        os.close(descriptor)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _take(descriptor: int, home: Home) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE)
        except OSError as error:
            raise _unusable(home, error) from error
        else:
            return
    pid = _read_pid(descriptor)
    known = f" (pid {pid})" if pid else ""
    stop = f"stop it with 'kill {pid}', or " if pid else ""
    raise HomeError(
        f"{home.path}: a daemon already runs here{known}",
        hint=f"{stop}start this one in another directory with --home",
        details={"path": str(home.path), "pid": pid},
    )


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None


def _write_pid(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _remove_leftovers(home: Home) -> None:
    """Only the holder of the lock may do this: the socket might be alive."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(home.socket.lstat().st_mode):
            raise HomeError(
                f"{home.socket}: something that is no socket stands where the socket must be",
                hint=f"mv {home.socket} {home.socket}.old",
                details={"path": str(home.socket)},
            )
        home.socket.unlink()
    home.endpoint.unlink(missing_ok=True)
    home.served.unlink(missing_ok=True)


def _unusable(home: Home, error: OSError) -> HomeError:
    return HomeError(
        f"{home.lock}: {error.strerror or error}",
        hint="the state directory must be on a local disk, writable and not full; "
        "choose one with --home",
        details={"path": str(home.lock)},
    )


def remember_served(
    home: Home, settings: Settings, endpoint: str, extensions: Iterable[str] = ()
) -> None:
    """Write down where and what this daemon serves.

    Raises:
        HomeError: it cannot be written; commands beside the daemon would mean something else.
    """
    _write(home.served, msgspec.json.encode(_served(settings, extensions)))
    _write(home.endpoint, f"{endpoint}\n".encode())


def remember_extensions(home: Home, settings: Settings, extensions: Iterable[str]) -> None:
    """Write down which extensions are loaded now, while commands may be reading.

    Raises:
        HomeError: it cannot be written.
    """
    beside = home.served.with_suffix(".new")
    _write(beside, msgspec.json.encode(_served(settings, extensions)))
    beside.replace(home.served)


def _served(settings: Settings, extensions: Iterable[str]) -> DaemonRecord:
    return DaemonRecord(
        _text(settings.catalogue),
        _text(settings.compositions),
        settings.handlers,
        tuple(str(path.absolute()) for path in settings.handler_paths),
        tuple(extensions),
        _text(settings.upstreams),
        {row.name: plain(getattr(settings, row.name)) for row in SETTINGS if row.name != "home"},
    )


def _write(path: Path, data: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise HomeError(message, hint="make room there, or choose another --home") from error


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def served_here(home: Home) -> DaemonRecord | None:
    """What the daemon of a home was started with; None when none runs, or nobody knows.

    Raises:
        HomeError: somebody else may have written it.
    """
    if running_pid(home) is None:
        return None
    check_file(home.served)
    try:
        return msgspec.json.decode(home.served.read_bytes(), type=DaemonRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def as_served(settings: Settings) -> Settings:
    """The settings with what nobody set taken from the daemon that runs in this home.

    The events of extensions that are loaded there count in any case: they exist.
    """
    home = Home(settings.home)
    served = served_here(home)
    if served is None:
        return settings
    settings = _with_what_stands_apart(settings, served)
    if any(settings.origins[name].kind != "default" for name in _SHARED):
        handlers = tuple(dict.fromkeys([*settings.handlers, *served.extensions]))
        return msgspec.structs.replace(settings, handlers=handlers)
    origin = Origin("file", str(home.served))
    return msgspec.structs.replace(
        settings,
        catalogue=Path(served.catalogue) if served.catalogue else None,
        compositions=Path(served.compositions) if served.compositions else None,
        handlers=tuple(dict.fromkeys([*served.handlers, *served.extensions])),
        handler_paths=tuple(map(Path, served.handler_paths)),
        origins={**settings.origins, **dict.fromkeys(_SHARED, origin)},
    )


def mismatches(settings: Settings) -> list[Mismatch]:
    """What somebody set here that the daemon of this home was not started with."""
    served = served_here(Home(settings.home))
    if served is None or all(settings.origins[name].kind == "default" for name in _SHARED):
        return []
    ours = _served(settings, served.extensions)
    # Extensions are loaded by the daemon, whatever is set.
    loaded = frozenset(served.extensions)
    found = []
    for name in _SHARED:
        here, there = getattr(ours, name), getattr(served, name)
        if name == "handlers":
            here = tuple(module for module in here if module not in loaded)
        if here != there:
            origin = str(settings.origins[name])
            found.append(Mismatch(name, _words(name, here), origin, _words(name, there)))
    return found


def other_settings(settings: Settings) -> list[Mismatch]:
    """What somebody set here beside definitions that the running daemon was not started with."""
    served = served_here(Home(settings.home))
    if served is None:
        return []
    found = []
    for name, there in served.settings.items():
        origin = settings.origins.get(name)
        if origin is None or origin.kind == "default" or name in _SHARED:
            continue
        here = plain(getattr(settings, name))
        if here != there and origin.where != str(Home(settings.home).served):
            found.append(Mismatch(name, _shown(here), str(origin), _shown(there)))
    return found


def plain(value: Any) -> Any:
    """The value of a setting as JSON has it."""
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, LaunchEntry):
        return value.to_json()
    return str(value.absolute()) if isinstance(value, Path) else value


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return "nothing" if value in (None, "") else str(value)


def check_served(
    settings: Settings, *, names: Iterable[str] | None = None, may_name_files: bool = True
) -> None:
    """Refuse to speak of two sets of definitions at once.

    Args:
        settings: those of a command beside the daemon.
        names: only these settings; when absent all that decide what definitions mean.
        may_name_files: whether the command could be told which files are meant.

    Raises:
        SettingsError: the daemon that runs in this home serves other definitions.
    """
    wanted = frozenset((*_SHARED, *_APART) if names is None else names)
    apart = (one for one in other_settings(settings) if one.name in _APART)
    found = [one for one in (*mismatches(settings), *apart) if one.name in wanted]
    if found:
        named = settings.catalogue or "FILE"
        way = f"ask about the files with --catalogue {named}, " if may_name_files else ""
        raise SettingsError(
            f"the daemon of {settings.home} serves other definitions: {found[0]}",
            hint=f"{way}leave this folder, or stop the daemon and serve these: remit serve",
            details={"mismatches": [msgspec.structs.asdict(one) for one in found]},
        )


def _words(name: str, value: str | tuple[str, ...] | None) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "nothing"
    return value or ("the shipped one" if name == "catalogue" else "beside the catalogue")


def _with_what_stands_apart(settings: Settings, served: DaemonRecord) -> Settings:
    """Servers and folders are not part of the definitions: whoever names these means those."""
    changes: dict[str, Any] = {}
    for name in _APART:
        there = served.settings.get(name)
        if settings.origins[name].kind == "default" and there:
            changes[name] = _READ.get(type(there), bool)(there)
    origin = Origin("file", str(Home(settings.home).served))
    origins = {**settings.origins, **dict.fromkeys(changes, origin)}
    return msgspec.structs.replace(settings, **changes, origins=origins)
