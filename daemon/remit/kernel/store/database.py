"""An open SQLite file: one connection that writes, one that reads, each with its thread."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from anyio import to_thread

from remit.errors import StoreError
from remit.kernel.store.audit_head import HeadKeeper
from remit.kernel.store.failures import full_error, is_full, store_error
from remit.kernel.store.reserve import Reserve
from remit.kernel.store.schema import Migration, migrate, read_migrations
from remit.kernel.store.stored_json import shown_text
from remit.kernel.store.worker import Job, Worker

# Group commit: all writes that wait become one transaction, and one wait for the disk.
#
# Each write runs in a savepoint of its own, so one that fails is undone alone; a single statement
# needs none, because SQLite undoes it by itself. Nobody is answered before the commit, so an
# acknowledged write is on the disk. When the transaction itself fails (disk full, file locked),
# everybody in it is told so and nothing of it is kept. For what is essential there is a reserve:
# on a full disk it is given back, and the essential writes are made again without the others.


_CHECKPOINT_PAGES = 1000
_CHECKPOINT_PAGES_FULL = 16


class GroupCommit:
    """Runs batches of writes; `commits` counts the transactions that reached the disk.

    `undone` changes whenever anything was rolled back, and `lost` when a whole transaction was, so
    that what a write remembers of the database outside of it can be told to be stale. Only the
    writing thread may compare them. `after` is called in that thread behind each transaction,
    before its callers are answered; it must not raise.
    """

    def __init__(self, path: str, reserve: Reserve | None = None) -> None:
        self._path = path
        self._reserve = reserve or Reserve()
        self.commits = 0
        self.undone = 0
        self.lost = 0
        self.after: Callable[[sqlite3.Connection], None] | None = None

    def __call__(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        """Run all jobs in one transaction, or fail them all; on a full disk the essential ones."""
        if self._reserve.is_spent:
            jobs = self._admit(connection, jobs)
        error = self._commit(connection, jobs)
        if error is not None and is_full(error) and self._reserve.release():
            self._spare(connection)
            _fail([job for job in jobs if not job.is_essential], self._path, error)
            jobs = [job for job in jobs if job.is_essential]
            for job in jobs:
                job.error = job.result = None
            error = self._commit(connection, jobs)
        if error is not None:
            _fail(jobs, self._path, error)

    def _admit(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> Sequence[Job]:
        """Those that may be written now: all when there is room again, else the essential ones."""
        if self._reserve.can_write():
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            return jobs
        for job in jobs:
            if not job.is_essential:
                job.error = full_error(self._path)
        return [job for job in jobs if job.is_essential]

    def _spare(self, connection: sqlite3.Connection) -> None:
        """Let the log grow as little as it can: what it holds goes into the file soon."""
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES_FULL}")
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error:  # the commit that follows tells better what is wrong
            return

    def _commit(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> sqlite3.Error | None:
        try:
            try:
                connection.execute("BEGIN IMMEDIATE")
                for job in jobs:
                    self._run_alone(connection, job)
                connection.execute("COMMIT")
            except BaseException:
                self.undone += 1
                self.lost += 1
                raise
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            return error
        self.commits += 1
        if self.after is not None:
            self.after(connection)
        return None

    def _run_alone(self, connection: sqlite3.Connection, job: Job) -> None:
        if not job.is_single:
            connection.execute("SAVEPOINT job")
        job.run(connection)
        if job.error is not None:
            self._undo(connection, job)
        if not job.is_single:
            connection.execute("RELEASE job")

    def _undo(self, connection: sqlite3.Connection, job: Job) -> None:
        if isinstance(job.error, sqlite3.Error):
            if not connection.in_transaction:
                # SQLite gave up the whole transaction (disk full, read error): so must we.
                error, job.error = job.error, None
                raise error
            job.error = store_error(self._path, job.error)
        self.undone += 1
        if not job.is_single:
            connection.execute("ROLLBACK TO job")


class SnapshotRead:
    """Runs batches of reads, all on one snapshot that is newer than every acknowledged write."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        """Run all jobs; one that fails does not harm the others."""
        try:
            try:
                connection.execute("BEGIN")
                for job in jobs:
                    job.run(connection)
                    if isinstance(job.error, sqlite3.Error):
                        job.error = store_error(self._path, job.error)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            _fail(jobs, self._path, error)


def _fail(jobs: Sequence[Job], path: str, error: sqlite3.Error) -> None:
    """Tell everybody who has no error of their own; an error object is never shared."""
    for job in jobs:
        if job.error is None:
            job.error = store_error(path, error)


T = TypeVar("T")


class Database:
    """Reads and writes by functions of a connection; open it with `async with`."""

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], float] = time.time,
        lock_wait: float = 2.0,
        reserve: Reserve | None = None,
        head: HeadKeeper | None = None,
        migrations: Sequence[Migration] | None = None,
    ) -> None:
        """Name the file; nothing is touched before `async with`.

        Args:
            path: where the file is or shall be.
            clock: tells the seconds since the epoch.
            lock_wait: seconds to wait for an outsider (a shell, a backup) that locks the file.
            reserve: the room on the disk that is kept for what is essential.
            head: keeps the head of the audit outside of the file.
            migrations: the steps to apply instead of the shipped ones.
        """
        self.path = path
        self._lock_wait = lock_wait
        self.clock = clock
        self._migrations = read_migrations() if migrations is None else migrations
        self._reserve = reserve or Reserve()
        self._head = head
        self.applied: tuple[str, ...] = ()
        """The steps that this opening had to apply."""
        self._commit = GroupCommit(path, self._reserve)
        self._writer: Worker | None = None
        self._reader: Worker | None = None

    @property
    def commits(self) -> int:
        """How many transactions reached the disk since the database was opened."""
        return self._commit.commits

    @property
    def is_full(self) -> bool:
        """Tell whether the disk is full, so that only what is essential is written."""
        return self._reserve.is_spent

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
        self._writer = Worker("remit-store-writer", writing, self._commit)
        self._reader = Worker("remit-store-reader", reading, SnapshotRead(self.path))
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The writer closes last: the last connection folds the write-ahead log into the file.
        await self._open(self._reader).close()
        await self._open(self._writer).close()

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
