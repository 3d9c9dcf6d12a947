"""upstreams.yaml on disk: read it, change it, put the whole new text in its place."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from remit.config.strict.yaml import MAX_BYTES
from remit.errors import ConflictError, HomeError, TooLargeError
from remit.model.place import DefinitionError, Place, Problem

_NEW_MODE = 0o600


def change_upstreams(path: Path, edit: Callable[[str], str]) -> None:
    """Replace the text of the file by what `edit` makes of it; a link keeps leading where it did.

    Raises:
        ConflictError: somebody else has written to it meanwhile.
        TooLargeError: the new text has more bytes than are read.
        HomeError: it cannot be written.
        RemitError: whatever `edit` raises; then nothing is written.
    """
    target = path.resolve()
    before = _read(target)
    after = edit((before or b"").decode("utf-8")).encode()
    if len(after) > MAX_BYTES:
        raise TooLargeError(f"{path} would have more than {MAX_BYTES:,} bytes")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(target, before, after)
    except OSError as error:
        message = f"{target} cannot be written: {error.strerror or error}"
        raise HomeError(message, hint="make room or rights there, or name another file") from error


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise DefinitionError([Problem(Place(str(path)), "unreadable", message)]) from error
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = Place(str(path), raw[: error.start].count(b"\n") + 1)
        problem = Problem(place, "not_utf8", "this is not UTF-8", "save the file as UTF-8")
        raise DefinitionError([problem]) from error
    return raw


def _replace(path: Path, before: bytes | None, after: bytes) -> None:
    """Write beside the file and rename, so that a cut-off run leaves the old text."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    mode = path.stat().st_mode & 0o777 if before is not None else _NEW_MODE
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(after)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        if _read(path) != before:
            message = f"{path} was changed by somebody else just now"
            raise ConflictError(message, hint="look at it and try again")
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
