"""Reading a file that must lie inside a folder, whatever links and special files are in the way."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe without a writer would be waited for, and a terminal would become ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class EscapesFolderError(Exception):
    """Why a path cannot be read as a file of a folder; never leaves the modules that read files."""


def find_inside(folder: Path, name: str) -> tuple[Path, Path]:
    """The folder and the file behind all links.

    Raises:
        EscapesFolderError: the path is absolute, leaves the folder, or cannot be followed.
        FileNotFoundError: there is no such folder.
    """
    if os.path.isabs(name):  # noqa: PTH117 - a text, and not yet a path
        raise EscapesFolderError(f"{name!r} is an absolute path")
    try:
        root = folder.resolve(strict=True)
        path = (root / name).resolve()
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # NUL, a circle of links
        raise EscapesFolderError(f"{name!r} cannot be followed: {_reason(error)}") from error
    if path == root or not path.is_relative_to(root):
        raise EscapesFolderError(f"{name!r} lies outside its folder")
    return root, path


def open_inside(folder: Path, name: str) -> BinaryIO:
    """Open a plain file for reading.

    INVARIANT: what is opened lies inside `folder`, even when somebody swaps links meanwhile: the
    way to the file is found once, and then walked without following any link.

    Raises:
        EscapesFolderError: it lies outside, is not a plain file, or cannot be opened.
        FileNotFoundError: there is no such file.
    """
    root, path = find_inside(folder, name)
    try:
        handle = _open_below(root, path.relative_to(root).parts)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise EscapesFolderError(f"{name!r} cannot be read: {_reason(error)}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise EscapesFolderError(f"{name!r} is not a file")
    return os.fdopen(handle, "rb")


def read_inside(folder: Path, name: str, limit: int) -> bytes:
    """At most one byte more than the limit: the parser refuses what is longer.

    Raises:
        EscapesFolderError: it lies outside, is not a plain file, or cannot be read.
        FileNotFoundError: there is no such file.
    """
    with open_inside(folder, name) as stream:
        try:
            return stream.read(limit + 1)
        except OSError as error:
            raise EscapesFolderError(f"{name!r} cannot be read: {_reason(error)}") from error


def _open_below(root: Path, parts: tuple[str, ...]) -> int:
    at = os.open(root, _DIRECTORY)
    try:
        for part in parts[:-1]:
            above, at = at, os.open(part, _DIRECTORY, dir_fd=at)
            os.close(above)
        return _open_file(parts[-1], at)
    finally:
        os.close(at)


def _open_file(name: str, folder: int) -> int:
    try:
        return os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
            raise OSError(errno.EINVAL, "it is not a file") from error
        raise


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
