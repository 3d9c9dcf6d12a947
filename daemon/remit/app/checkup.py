"""What `remit doctor` looks at."""

import importlib.util
import shlex
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from remit.app.workbench import open_workbench
from remit.config.home import Home, inspect_home, ipc_endpoint
from remit.config.lock import running_pid
from remit.config.settings_table import Settings
from remit.config.upstream_file import inspect_upstreams, upstreams_path
from remit.errors import RemitError
from remit.model.place import DefinitionError

OLDEST_PYTHON = (3, 11)
_NEEDED = ("anyio", "click", "msgspec", "structlog", "yaml", "zmq")


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    state: Literal["fine", "warning", "broken"]
    message: str
    repair: str = ""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        return msgspec.structs.asdict(self)


def examine(settings: Settings) -> list[Check]:
    """Look at everything; a failing look is itself a finding."""
    looks: tuple[Callable[[Settings], Iterator[Check]], ...] = (
        _python,
        _packages,
        _home,
        _keys,
        _socket,
        _definitions,
        _outside,
    )
    return [check for look in looks for check in look(settings)]


def _python(_settings: Settings) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield Check("python", "broken", f"{version} is too old", "install python 3.11 or newer")
    else:
        yield Check("python", "fine", f"{version} at {sys.executable}")


def _packages(_settings: Settings) -> Iterator[Check]:
    missing = [name for name in _NEEDED if not _is_installed(name)]
    if missing:
        repair = "rm -rf .venv && ./tools/run, or pip install --force-reinstall remit"
        yield Check("packages", "broken", f"not installed: {', '.join(missing)}", repair)
    else:
        yield Check("packages", "fine", "everything the daemon needs is installed")


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _home(settings: Settings) -> Iterator[Check]:
    home = Home(settings.home)
    if not home.path.exists():
        yield Check("home", "fine", f"{home.path} will be made at the first start")
        return
    findings = list(inspect_home(home))
    for finding in findings:
        state: Literal["warning", "broken"] = "broken" if finding.mode is None else "warning"
        yield Check("home", state, finding.message, finding.repair)
    if not findings:
        yield Check("home", "fine", f"{home.path} is yours alone")


def _keys(settings: Settings) -> Iterator[Check]:
    """Keys that are there but cannot be used; the next start would stop at them."""
    home = Home(settings.home)
    there = [path for path in (home.server_key, home.operator_key) if path.is_file()]
    if not there:
        return
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415
    from remit_client.keys import load_key  # noqa: PLC0415 - zmq, only when there are keys

    for path in there:
        try:
            load_key(path)
        except ClientError as error:
            # Loose modes are told with the home, and the next start tightens them.
            if not path.stat().st_mode & 0o077:
                repair = "restore it from a backup; a new server key locks out all who know the old"
                yield Check("keys", "broken", error.message, repair)


def _socket(settings: Settings) -> Iterator[Check]:
    home = Home(settings.home)
    try:
        endpoint = settings.endpoint or ipc_endpoint(home)
    except RemitError as error:
        yield Check("socket", "broken", error.message, error.hint)
        return
    pid = running_pid(home)
    if pid is not None:
        yield from _answering(settings, pid)
    elif home.socket.exists():
        message = f"{home.socket} was left by a daemon that died; the next start removes it"
        yield Check("socket", "warning", message, "remit serve")
    else:
        yield Check("socket", "fine", f"no daemon runs; it would listen at {endpoint}")


def _answering(settings: Settings, pid: int) -> Iterator[Check]:
    import remit_client.sync  # noqa: PLC0415 - zmq, only when a daemon runs
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415

    try:
        with remit_client.sync.connect(home=str(settings.home)) as remit:
            health = remit.call("system:health", timeout=5)
    except ClientError as error:
        message = f"a daemon runs (pid {pid}) and does not answer: {error.message}"
        yield Check("socket", "broken", message, f"kill {pid}, then remit serve")
        return
    if health["stale"]:
        yield Check("socket", "warning", "the daemon refused newer definitions", "remit check")
    else:
        yield Check("socket", "fine", f"the daemon (pid {pid}) answers: {health['status']}")


def _definitions(settings: Settings) -> Iterator[Check]:
    try:
        bench = open_workbench(settings)
    except DefinitionError as error:
        yield Check("definitions", "broken", error.message, "remit check")
        return
    for failure in bench.failures:
        yield Check("handlers", "broken", str(failure), "repair or remove the module")
    catalogue = bench.catalogue
    message = f"{len(catalogue.capabilities)} capabilities, {len(catalogue.compositions)} profiles"
    yield Check("definitions", "fine", message)


def _outside(settings: Settings) -> Iterator[Check]:
    """Outside servers, where there are any."""
    found = inspect_upstreams(upstreams_path(settings))
    if found.errors:
        message = f"{found.errors[0].place}: {found.errors[0].message}"
        yield Check("upstreams", "broken", message, "remit check")
    if found.errors or not found.upstreams:
        return
    from remit.app.upstream_checkup import kept_ill, obstacles  # noqa: PLC0415 - only with servers

    path = upstreams_path(settings)
    if path.stat().st_mode & 0o022:
        message = f"{path} can be written by others, and it names programs to start"
        yield Check("upstreams", "warning", message, f"chmod go-w {shlex.quote(str(path))}")
    if running_pid(Home(settings.home)) is not None:
        told = list(kept_ill(settings))
    else:
        told = [(one.name, *why) for one in found.upstreams for why in obstacles(one)]
    for name, message, repair in told:
        yield Check("upstreams", "warning", f"{name}: {message}", repair)
    if not told:
        message = f"{len(found.upstreams)} outside servers, and nothing wrong with them"
        yield Check("upstreams", "fine", message)
