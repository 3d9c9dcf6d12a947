"""SQLite's complaints, said so that an operator can act on them."""

import sqlite3

from remit.errors import StoreError

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
