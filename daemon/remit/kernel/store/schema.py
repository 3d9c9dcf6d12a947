"""Bringing a database to the tables this program knows, one numbered file at a time.

A file that was applied once never changes again: its checksum is in the database, and a mismatch
stops the daemon before it touches tables it misunderstands.
"""

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from remit.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"

_RECORDS = """
CREATE TABLE IF NOT EXISTS migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at REAL NOT NULL
) STRICT
"""


class Migration(msgspec.Struct, frozen=True):
    """One numbered step."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """What proves that the step is the one that was applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(folder: Path = MIGRATIONS) -> tuple[Migration, ...]:
    """The steps of this program, in order. Files are named like `0001_state_and_keys.sql`."""
    # read_text turns CRLF into LF: a checkout on another system keeps its checksums.
    return tuple(
        Migration(int(path.name.split("_")[0]), path.stem, path.read_text("utf-8"))
        for path in sorted(folder.glob("*.sql"))
    )


def migrate(
    connection: sqlite3.Connection, path: str, migrations: Sequence[Migration]
) -> tuple[int, ...]:
    """Apply the steps that are missing, each in one transaction; answers their numbers.

    Raises:
        StoreError: the database is not ours, is newer than this program, or was made by another
            version of a step.
    """
    applied = _applied(connection, path)
    _check(applied, path, migrations)
    missing = [step for step in migrations if step.number not in applied]
    for step in missing:
        _apply(connection, step)
    return tuple(step.number for step in missing)


def _applied(connection: sqlite3.Connection, path: str) -> dict[int, tuple[str, str]]:
    """The steps the database has seen: number to name and checksum."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "migration" in tables:
        rows = connection.execute("SELECT number, name, checksum FROM migration")
        return {number: (name, checksum) for number, name, checksum in rows}
    if tables:
        raise StoreError(
            f"{path}: this database belongs to another program",
            hint="move the file away, or choose another state directory with --home",
        )
    return {}


def _check(applied: dict[int, tuple[str, str]], path: str, migrations: Sequence[Migration]) -> None:
    known = {step.number: step for step in migrations}
    for number, (name, checksum) in sorted(applied.items()):
        if number not in known:
            raise StoreError(
                f"{path}: the database was written by a newer remit (it has {name})",
                hint="upgrade remit, or choose another state directory with --home",
                details={"migration": name},
            )
        if known[number].checksum != checksum:
            raise StoreError(
                f"{path}: {known[number].name} is not the step that made this database",
                hint="reinstall the remit that made it; applied migration files never change",
                details={"migration": name},
            )


def _apply(connection: sqlite3.Connection, step: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_RECORDS)
        for statement in _statements(step.sql):
            connection.execute(statement)
        row = (step.number, step.name, step.checksum, time.time())
        connection.execute("INSERT INTO migration VALUES (?, ?, ?, ?)", row)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _statements(sql: str) -> Iterator[str]:
    """Cut a script; `executescript` would commit behind our back."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
