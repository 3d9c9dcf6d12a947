"""Where launched processes live: a folder for each agent, which is no other agent's, and its key.

A folder ends with its agent, so that a later agent of the same name finds nothing in it. Ending
takes a moment, however much a process wrote: the folder is renamed, and removed beside the loop.
"""

import os
import shutil
import stat
from pathlib import Path

import structlog

from remit.config.settings.launch_user import LaunchUser
from remit.errors import InvalidDataError
from remit.kernel.processes.guard import process_guard
from remit_client.keys import Key, save_key

log = structlog.get_logger()

_ENDED = ".ended-"


class Premises:
    """The folders in one directory of the daemon's, and whose processes live there."""

    def __init__(self, directory: Path, *, owner: str = "", user: LaunchUser | None = None) -> None:
        """Describe them.

        Args:
            directory: where the folders are.
            owner: whom the processes belong to, so that a later start finds what is left of them.
            user: whom they run as; None: as us.
        """
        self._directory = directory
        self.owner = owner
        self.user = user

    @property
    def guard(self) -> tuple[str, ...]:
        """The words before a command that make it die with us, and theirs whose it is to be."""
        return process_guard(self.owner, self.user.ids if self.user else "")

    def folder(self, agent: str) -> Path:
        """The folder of an agent, made when it is not there.

        Raises:
            InvalidDataError: something else is there, or it cannot be made.
        """
        path = self._directory / agent
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
            if self.user is not None and found.st_uid == os.geteuid():
                os.chown(path, self.user.uid, self.user.gid, follow_symlinks=False)
                found = path.lstat()
        except OSError as error:
            message = f"{path} cannot be made: {error.strerror or error}"
            raise InvalidDataError(message, hint="see the setting launch_dir") from error
        owner = os.geteuid() if self.user is None else self.user.uid
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
            raise InvalidDataError(f"{path} is not the folder of a launched process")
        return path

    def give_key(self, path: Path, key: Key) -> Path:
        """Where a process finds its key: `path`, or a copy that its user may read."""
        if self.user is None:
            return path
        copy = self._key_of(key.name)
        save_key(copy, key)
        os.chown(copy, self.user.uid, self.user.gid, follow_symlinks=False)
        return copy

    def end(self, agent: str) -> Path | None:
        """Take the folder and the key of an agent away; answers what is still to be removed."""
        self._key_of(agent).unlink(missing_ok=True)
        ended = self._directory / f"{_ENDED}{agent}-{os.urandom(4).hex()}"
        try:
            (self._directory / agent).rename(ended)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("launch_folder_not_removed", agent=agent, problem=str(error))
            return None
        return ended

    def left(self) -> list[Path]:
        """What an earlier run renamed and did not remove."""
        return sorted(self._directory.glob(f"{_ENDED}*"))

    def _key_of(self, agent: str) -> Path:
        # No name of an agent has a dot, so this is no folder of one.
        return self._directory / f"{agent}.key"


def remove_folder(path: Path) -> None:
    """Remove a folder that was ended; what is left of it goes at the next start."""
    shutil.rmtree(path, ignore_errors=True)
