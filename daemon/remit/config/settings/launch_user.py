"""The user that launched processes run as, and the directory of their folders.

Another user cannot reach the home, which is the daemon's alone. So its processes need a directory
of their own and a socket that is no file, and whatever is missing is told before anything starts.
"""

import os
import stat
from pathlib import Path

import msgspec

from remit.config.settings.home import Home
from remit.config.settings.table import Settings
from remit.errors import SettingsError

_DIRECTORY_MODE = 0o711
"""Its folders can be reached by name, and not listed."""


class LaunchUser(msgspec.Struct, frozen=True):
    """The user that a launched process runs as."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @property
    def variables(self) -> dict[str, str]:
        """What a process of this user finds in its environment."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    @property
    def ids(self) -> str:
        """User, group and further groups, as `kernel/processes/guard.py` takes them."""
        return ",".join(map(str, (self.uid, self.gid, *self.groups)))


def launch_dir(settings: Settings) -> Path:
    """The directory in which each process has a folder of its own."""
    return settings.launch_dir or Home(settings.home).launched


def launch_user(settings: Settings) -> LaunchUser | None:
    """The user of the setting `launch_user`; None when it is empty.

    Raises:
        SettingsError: processes cannot run as that user here.
    """
    if not settings.launch_user:
        return None
    if os.geteuid() != 0:
        who = f"the daemon runs as user {os.geteuid()}"
        raise _refusal(settings, f"{who}, and only root can start processes as another", "")
    user = _find(settings)
    if not settings.endpoint.startswith("tcp://"):
        problem = f"{user.name} cannot reach a socket in the home"
        raise _refusal(settings, problem, "set endpoint = 'tcp://127.0.0.1:7420'")
    if settings.launch_dir is None:
        problem = f"{user.name} cannot reach the home"
        raise _refusal(settings, problem, "set launch_dir, as in '/var/lib/remit-launched'")
    blocked = _blocked(settings.launch_dir, user)
    if blocked:
        raise _refusal(settings, blocked, "choose another launch_dir")
    return user


def _find(settings: Settings) -> LaunchUser:
    import pwd  # noqa: PLC0415 - only with the setting

    try:
        found = pwd.getpwnam(settings.launch_user)
    except KeyError:
        problem = f"there is no user {settings.launch_user!r}"
        raise _refusal(settings, problem, f"useradd --system {settings.launch_user}") from None
    if found.pw_uid == 0:
        raise _refusal(settings, "root is no other user", "name one that owns nothing else")
    groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
    return LaunchUser(found.pw_name, found.pw_uid, found.pw_gid, groups, found.pw_dir)


def _blocked(directory: Path, user: LaunchUser) -> str:
    """Why the folders in a directory are out of a user's reach, or in somebody else's."""
    for above in directory.parents:
        if above.exists() and not _may_pass(above, user):
            return f"{user.name} cannot reach {directory}: it may not pass through {above}"
    if not directory.exists():
        return ""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        return f"{directory} must be a directory that belongs to root and nobody else writes to"
    return ""


def _may_pass(directory: Path, user: LaunchUser) -> bool:
    found = directory.stat()
    if found.st_uid == user.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid in user.groups:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def make_launch_dir(directory: Path, user: LaunchUser | None) -> None:
    """Make the directory of the folders.

    Raises:
        SettingsError: it cannot be made.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if user is not None:
            directory.chmod(_DIRECTORY_MODE)
    except OSError as error:
        message = f"launch_dir {directory} cannot be made: {error.strerror or error}"
        raise SettingsError(message, hint="choose another one") from error


def _refusal(settings: Settings, problem: str, hint: str) -> SettingsError:
    where = str(settings.origins["launch_user"])
    message = f"launch_user {settings.launch_user!r} cannot be used: {problem}"
    hint = hint or "start the daemon as root, or leave launch_user out"
    problems = [{"where": where, "message": message, "hint": hint}]
    return SettingsError(f"{where}: {message}", hint=hint, details={"problems": problems})
