"""What can be wrong with the disk: complaints of SQLite, damaged text, and no room.

A complaint is said so that an operator can act on it. For what must be written when the disk is
full, room is kept: a file of a fixed size beside the database. When a write finds the disk full,
the file is emptied, and until it can be filled again only what is essential is written: denials,
and rights that are taken away. So no caller can use up what was kept; another program on the same
disk can.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from remit.errors import StoreError

_PAUSE = 0.1
"""Seconds between two attempts to fill it again."""
_CHUNK = 65_536

# The low byte of SQLite's extended codes: https://www.sqlite.org/rescode.html
_TEACHING = {
    sqlite3.SQLITE_FULL: (
        "the disk is full",
        "free some space on it; the daemon goes on by itself, reads and decisions still work",
    ),
    sqlite3.SQLITE_BUSY: (
        "another program holds it locked",
        "close the program that has the file open (a shell, a backup), then repeat",
    ),
    sqlite3.SQLITE_LOCKED: (
        "another program holds it locked",
        "close the program that has the file open (a shell, a backup), then repeat",
    ),
    sqlite3.SQLITE_READONLY: (
        "it is read-only",
        "make the file and its directory writable for the daemon's user",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "the directory must exist and be writable for the daemon's user",
    ),
    sqlite3.SQLITE_PERM: (
        "permission was refused",
        "make the file and its directory writable for the daemon's user",
    ),
    sqlite3.SQLITE_NOTADB: (
        "it is not a database",
        "move the file away and restore a backup, or start with an empty store",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "move it away and restore a backup, or save what is left with 'sqlite3 FILE .recover'",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "look at the system log; the file may be on a failing or full disk",
    ),
    sqlite3.SQLITE_TOOBIG: ("a value is too large", "store less under one key"),
}


def is_full(error: sqlite3.Error) -> bool:
    """Tell whether there was no room for a write."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    # The shared-memory file of the log complains in its own words.
    return code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE


def full_error(path: str) -> StoreError:
    """The refusal of a write that is not essential while the disk is full."""
    what, hint = _TEACHING[sqlite3.SQLITE_FULL]
    return StoreError(f"{path}: {what}", hint=hint, details={"sqlite": "SQLITE_FULL"})


def store_error(path: str, error: sqlite3.Error) -> StoreError:
    """What `error` means for the person who runs the daemon."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    what, hint = _TEACHING.get(code & 0xFF, (str(error), ""))
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(
        f"{path}: {what}", hint=hint, details={"sqlite": name, "sqlite_message": str(error)}
    )


def shown_text(data: bytes) -> str:
    """Text of a column; a byte that is no UTF-8 is escaped."""
    return data.decode(errors="backslashreplace")


class Reserve:
    """The file; without a path or a size there is none, and nothing is ever kept back."""

    def __init__(
        self,
        path: Path | None = None,
        size: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path if size > 0 else None
        self._size = size
        self._clock = clock
        self._next_try = 0.0
        self.is_spent = False
        """Whether the disk is full, as far as is known."""

    def fill(self) -> bool:
        """Take the room, or note that there is none; tells whether it is kept now."""
        self._next_try = self._clock() + _PAUSE
        try:
            self._allocate()
        except OSError:
            self._empty()
            self.is_spent = self._path is not None
        else:
            self.is_spent = False
        return not self.is_spent

    def release(self) -> bool:
        """Give the room back, because the disk is full; tells whether there was any."""
        if self._path is None or self.is_spent:
            return False
        self.is_spent = True
        self._next_try = self._clock() + _PAUSE
        return self._empty()

    def can_write(self) -> bool:
        """Tell whether also what is not essential may be written; looks whether there is room."""
        if not self.is_spent:
            return True
        return self._clock() >= self._next_try and self.fill()

    def _allocate(self) -> None:
        if self._path is None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            have = os.fstat(descriptor).st_size
            if have > self._size:
                os.ftruncate(descriptor, self._size)
            # Bytes that were written, not a promise: a hole in a file keeps no room.
            while have < self._size:
                have += os.pwrite(descriptor, bytes(min(_CHUNK, self._size - have)), have)
        finally:
            os.close(descriptor)

    def _empty(self) -> bool:
        if self._path is None:
            return False
        try:
            os.truncate(self._path, 0)
        except OSError:
            return False
        return True
