"""An open SQLite file: one connection that writes, one that reads, each with its thread.

An acknowledged write (the call returned) is on the disk, and every later read sees it. A write
whose caller was cancelled may or may not have happened. Closing finishes what was accepted. On a
full disk what is essential is still written: rights that are taken away, and denials.

Opening brings the file to the tables this program knows, one numbered step at a time. A step that
was applied once never changes again: its checksum is in the database, and a mismatch stops the
daemon before it touches tables it misunderstands.
"""

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import msgspec
from anyio import to_thread

from remit.errors import StoreError
from remit.kernel.store.disk import Reserve, is_full, shown_text, store_error
from remit.kernel.store.worker import GroupCommit, SnapshotRead, Worker

MIGRATIONS = Path(__file__).parent / "migrations"
_RECORDS = """
CREATE TABLE IF NOT EXISTS migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at REAL NOT NULL
) STRICT
"""

T = TypeVar("T")
_PING = "SELECT number FROM migration LIMIT 1"


class Migration(msgspec.Struct, frozen=True):
    """One numbered step."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """What proves that the step is the one that was applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


class CommitObserver(Protocol):
    """Whoever keeps something outside of the database in step with it, as the audit its head."""

    def opened(self, connection: sqlite3.Connection, applied: Sequence[str]) -> None:
        """Begin, in the first transaction; `applied` are the migrations that this opening made."""

    def committed(self, connection: sqlite3.Connection) -> None:
        """Follow a transaction, in the writing thread and before its callers are answered.

        It must not raise.
        """

    def closed(self) -> None:
        """End, when nothing is written any more."""


class Database:
    """Reads and writes by functions of a connection; open it with `async with`."""

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], float] = time.time,
        lock_wait: float = 2.0,
        reserve: Reserve | None = None,
        migrations: Sequence[Migration] | None = None,
    ) -> None:
        """Name the file; nothing is touched before `async with`.

        Args:
            path: where the file is or shall be.
            clock: tells the seconds since the epoch.
            lock_wait: seconds to wait for an outsider (a shell, a backup) that locks the file.
            reserve: the room on the disk that is kept for what is essential.
            migrations: the steps to apply instead of the shipped ones.
        """
        self.path = path
        self._lock_wait = lock_wait
        self.clock = clock
        self._migrations = read_migrations() if migrations is None else migrations
        self._reserve = reserve or Reserve()
        self.applied: tuple[str, ...] = ()
        """The migrations that this opening had to make."""
        self.observers: list[CommitObserver] = []
        self._memories: dict[type, Any] = {}
        self._commit = GroupCommit(path, self._reserve)
        self._writer: Worker | None = None
        self._reader: Worker | None = None

    @property
    def commits(self) -> int:
        """How many transactions reached the disk since the database was opened."""
        return self._commit.commits

    @property
    def undone(self) -> int:
        """Changes whenever a write was undone: what a write has remembered of rows may be wrong."""
        return self._commit.undone

    @property
    def lost(self) -> int:
        """Changes whenever a whole transaction was lost, or the file was opened again."""
        return self._commit.lost

    @property
    def is_full(self) -> bool:
        """Tell whether the disk is full, so that only what is essential is written."""
        return self._reserve.is_spent

    def memory(self, kind: type[T]) -> T:
        """What rows remember of their table: one of a kind, whoever looks at this database."""
        if kind not in self._memories:
            self._memories[kind] = kind()
        found: T = self._memories[kind]
        return found

    async def ping(self) -> None:
        """Read anything.

        Raises:
            StoreError: the database cannot be read.
        """
        await self.read(lambda connection: connection.execute(_PING).fetchone())

    async def write(
        self,
        function: Callable[[sqlite3.Connection], T],
        *,
        is_single: bool = False,
        is_essential: bool = False,
    ) -> T:
        """Run `function` inside the next transaction and return after its commit.

        It may run beside others but never sees half of one. A caller that is cancelled while it
        waits does not stop the write. `is_single` promises that the function ends with the one
        statement by which it changes anything: that spares a savepoint, a sixth of a small write.
        `is_essential` means that room is kept for it on the disk; it may then be run twice.

        Raises:
            StoreError: the database cannot be written; nothing of this write is kept.
        """
        return await self._open(self._writer).run(
            function, is_single=is_single, is_essential=is_essential
        )

    async def read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` on a snapshot that holds every write acknowledged before the call.

        Raises:
            StoreError: the database cannot be read.
        """
        return await self._open(self._reader).run(function)

    async def __aenter__(self) -> Self:
        writing, reading = await to_thread.run_sync(self._connect)
        self._commit.forget()
        self._commit.after = None
        self._writer = Worker("remit-store-writer", writing, self._commit)
        self._reader = Worker("remit-store-reader", reading, SnapshotRead(self.path))
        try:
            for observer in self.observers:
                begin = partial(observer.opened, applied=self.applied)
                await self.write(begin, is_essential=True)
        except BaseException:
            await self._close()
            raise
        self._commit.after = self._committed
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()
        for observer in self.observers:
            observer.closed()

    async def _close(self) -> None:
        # The writer closes last: the last connection folds the write-ahead log into the file.
        await self._open(self._reader).close()
        await self._open(self._writer).close()

    def _committed(self, connection: sqlite3.Connection) -> None:
        for observer in self.observers:
            observer.committed(connection)

    def _open(self, worker: Worker | None) -> Worker:
        if worker is None:
            raise StoreError("the store is not open", hint="use it inside 'async with'")
        return worker

    def _connect(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        try:
            try:
                found = self._connect_both()
            except sqlite3.Error as error:
                if not is_full(error) or not self._reserve.release():
                    raise
                found = self._connect_both()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error
        if not self._reserve.is_spent:
            self._reserve.fill()
        return found

    def _connect_both(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        writing = _connect(self.path, "rwc", self._lock_wait)
        try:
            _prepare(writing, self.path)
            applied = migrate(writing, self.path, self._migrations)
            self.applied = tuple(s.name for s in self._migrations if s.number in applied)
            return writing, _connect(self.path, "ro", self._lock_wait)
        except BaseException:
            writing.close()
            raise


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


def _connect(path: str, mode: str, lock_wait: float) -> sqlite3.Connection:
    # The thread that opens is not the one that works; never two use a connection at once.
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=lock_wait,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = shown_text  # one damaged row must not hide all others
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    with closing(connection.execute("PRAGMA journal_mode = WAL")) as answer:
        (mode,) = answer.fetchone()
    if mode != "wal":
        raise StoreError(
            f"{path}: this file system cannot keep a write-ahead log",
            hint="choose a state directory on a local disk with --home",
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Or REPLACE would delete audit rows behind the back of the trigger that forbids it.
    connection.execute("PRAGMA recursive_triggers = ON")


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
