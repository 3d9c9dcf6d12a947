"""Writing to upstreams.yaml, and whether a running daemon has taken it up."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from remit.config.home import Home
from remit.config.lock import running_pid
from remit.config.settings_table import Settings
from remit.config.upstream_file import UpstreamFile, inspect_upstreams, upstreams_path
from remit.errors import ConflictError, RemitError
from remit.model.place import DefinitionError

_PATIENCE = 5.0
_PAUSE = 0.05


def write_servers(
    settings: Settings, entries: Mapping[str, Mapping[str, Any]], *, replace: bool
) -> dict[str, Any]:
    """Put servers into the file, all of them or none; answers whether they are in force.

    Raises:
        ConflictError: one of them is there already, and is not to be replaced.
    """
    from remit.config.upstream_edit import with_servers  # noqa: PLC0415 - only for edits
    from remit.config.upstream_store import change_upstreams  # noqa: PLC0415

    path = upstreams_path(settings)
    there = {one.name for one in readable(path).upstreams}
    taken = sorted(there & entries.keys())
    if taken and not replace:
        hint = "give another name, or say --replace"
        raise ConflictError(f"{', '.join(taken)}: already in {path}", hint=hint)
    change_upstreams(path, lambda text: with_servers(text, entries, path))
    return in_force(settings, entries, replaced=bool(taken))


def readable(path: Path) -> UpstreamFile:
    """What the file says; an empty one says nothing.

    Raises:
        DefinitionError: it has mistakes, and is not edited before these are repaired.
    """
    found = inspect_upstreams(path)
    if found.errors and [problem.code for problem in found.errors] != ["empty_file"]:
        raise DefinitionError(found.errors)
    return found


def in_force(
    settings: Settings, there: Iterable[str], gone: Iterable[str] = (), *, replaced: bool = False
) -> dict[str, Any]:
    """Tell whether the daemon has taken up an edit: it reads the file by itself, after a moment."""
    told: dict[str, Any] = {"needs_reload": False}
    if running_pid(Home(settings.home)) is None:
        return told | _told(is_there=False, message="no daemon runs: it counts from the next start")
    if replaced:  # nothing that the daemon tells shows which of two entries it goes by
        return told | _told(is_there=None, message="the daemon takes it up in a moment")
    try:
        known = _wait_for(settings, set(there), set(gone))
    except RemitError as error:
        message = f"the daemon cannot be asked: {error.message}"
        return told | _told(is_there=None, message=message)
    if known:
        return told | _told(is_there=True, message="the daemon has it in force")
    message = "the daemon has not taken it up: see remit upstream list, then remit reload"
    return {"needs_reload": True} | _told(is_there=False, message=message)


def _told(*, is_there: bool | None, message: str) -> dict[str, Any]:
    return {"in_force": is_there, "message": message}


def _wait_for(settings: Settings, there: set[str], gone: set[str]) -> bool:
    from remit.cli.connection import daemon_answers  # noqa: PLC0415 - zmq, only with a daemon

    deadline = time.monotonic() + _PATIENCE
    with daemon_answers(settings) as daemon:
        while daemon is not None and time.monotonic() < deadline:
            known = {one["name"] for one in daemon.upstreams()["items"]}
            if there <= known and not gone & known:
                return True
            time.sleep(_PAUSE)
    return False
