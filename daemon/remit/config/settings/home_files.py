"""Whether the files of a state directory can be trusted: ours alone, and what they seem to be.

Whoever can put a store, a list of servers or a pin there decides what agents may do. So each is
looked at before it is used, and what somebody else has made, or could have changed, is refused.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remit.errors import HomeError

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


class Finding(msgspec.Struct, frozen=True):
    """Something about a home that is not as it must be.

    `mode` is what the daemon sets by itself; None means that a person has to act.
    """

    path: Path
    message: str
    repair: str
    mode: int | None = None


def inspect_file(
    path: Path, *, may_be_link: bool = False, mode: int | None = None
) -> Iterator[Finding]:
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
        yield Finding(path, message, move_away(path))
    else:
        yield from _inspect_rights(path, found, mode)


def check_file(path: Path, *, may_be_link: bool = False) -> None:
    """Refuse to use a file that somebody else has made, or could have changed.

    Raises:
        HomeError: it is so; the hint is the command that repairs it.
    """
    for finding in inspect_file(path, may_be_link=may_be_link):
        raise HomeError(finding.message, hint=finding.repair, details={"path": str(finding.path)})


def _inspect_rights(
    path: Path, found: os.stat_result, mode: int | None = None
) -> Iterator[Finding]:
    if found.st_uid != os.geteuid():
        yield foreign(path, found.st_uid)
    elif found.st_mode & _WRITABLE:
        message = f"{path}: others may have changed it, mode {stat.S_IMODE(found.st_mode):04o}"
        repair = f"chmod go-w {quoted(path)}"
        yield Finding(path, message, repair if mode else f"look at it, then: {repair}", mode)


def inspect_socket(path: Path) -> Iterator[Finding]:
    """Tell what is wrong with a socket."""
    if is_there(path) and (found := path.lstat()).st_uid != os.geteuid():
        yield foreign(path, found.st_uid)


def inspect_folder(path: Path) -> Iterator[Finding]:
    """Tell what is wrong with a directory and all that is in it."""
    if not is_there(path):
        return
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        message = f"{path}: this must be a directory, not a link or anything else"
        yield Finding(path, message, move_away(path))
        return
    yield from _inspect_rights(path, found)
    for inside in sorted(path.iterdir()):
        if inside.is_dir() and not inside.is_symlink():
            yield from inspect_folder(inside)
        else:
            yield from inspect_file(inside)


def foreign(path: Path, owner: int) -> Finding:
    """What to say of something that belongs to another user."""
    me = os.geteuid()
    message = f"{path}: belongs to user {owner}, but remit runs as user {me}"
    repair = f"sudo chown -R {me} {quoted(path)}   (or choose another directory with --home)"
    return Finding(path, message, repair)


def is_there(path: Path) -> bool:
    """Unlike `exists`, this sees a link that leads nowhere."""
    return os.path.lexists(path)


def move_away(path: Path) -> str:
    """The command that takes something out of the way."""
    return f"mv {quoted(path)} {quoted(Path(f'{path}.old'))}"


def quoted(path: Path) -> str:
    """A path as a shell reads it."""
    import shlex  # noqa: PLC0415 - only a mistake has to pay for it

    return shlex.quote(str(path))
