"""What `remit doctor` looks at."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator

from remit.app.doctor.daemon import Check, look_at_daemon, nearest_there
from remit.app.doctor.files import (
    look_at_definitions,
    look_at_scorers,
    look_at_store,
    look_at_upstreams,
)
from remit.config.settings.home import Home, inspect_home
from remit.config.settings.table import Settings
from remit.errors import RemitError

OLDEST_PYTHON = (3, 11)
_SECRET = 0o600
_NEEDED = ("anyio", "click", "msgspec", "structlog", "yaml", "zmq")


def examine(settings: Settings) -> list[Check]:
    """Look at everything; a failing look is itself a finding."""
    looks: tuple[Callable[[Settings], Iterator[Check]], ...] = (
        _python,
        _packages,
        _home,
        _keys,
        look_at_store,
        _audit,
        look_at_daemon,
        look_at_definitions,
        look_at_scorers,
        look_at_upstreams,
    )
    return [check for look in looks for check in _looked(look, settings)]


def _audit(settings: Settings) -> Iterator[Check]:
    """Whether the audit ends where its head says; the whole proof is a command of its own."""
    home = Home(settings.home)
    if home.audit_head.exists():
        from remit.app.audit_files import head_of_files  # noqa: PLC0415 - reads a database

        head = head_of_files(home)
        if head.problem:
            yield Check("audit", "broken", head.problem, "remit audit verify")


def _looked(look: Callable[[Settings], Iterator[Check]], settings: Settings) -> Iterator[Check]:
    """What a look finds; one that the system does not let us finish finds that."""
    try:
        yield from look(settings)
    except (OSError, RemitError) as error:
        name = look.__name__.removeprefix("look_at_").strip("_")
        message, hint = str(error), ""
        if isinstance(error, RemitError):
            message, hint = error.message, error.hint
        yield Check(name, "broken", message, hint or "make it yours, or choose another with --home")


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
        above = nearest_there(home.path)
        if os.access(above, os.W_OK | os.X_OK):
            yield Check("home", "fine", f"{home.path} will be made at the first start")
        else:
            message = f"{home.path} cannot be made: {above} is read-only for you"
            yield Check("home", "broken", message, "choose another with --home")
        return
    findings, is_writable = list(inspect_home(home)), os.access(home.path, os.W_OK | os.X_OK)
    for finding in findings:
        # A secret key that others may read is refused by clients, whatever the next start does.
        name = "keys" if finding.mode == _SECRET else "home"
        is_broken = finding.mode in (None, _SECRET) or not is_writable
        yield Check(name, "broken" if is_broken else "warning", finding.message, finding.repair)
        if not is_writable:
            return  # the rest comes of it
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
            # Loose modes are told with the home.
            if not path.stat().st_mode & 0o077:
                repair = "restore it from a backup; a new server key locks out all who know the old"
                yield Check("keys", "broken", error.message, repair)
