"""Group commit: all writes that wait become one transaction, and one wait for the disk.

Each write runs in a savepoint of its own, so one that fails is undone alone; a single statement
needs none, because SQLite undoes it by itself. Nobody is answered before the commit, so an
acknowledged write is on the disk. When the transaction itself fails (disk full, file locked),
everybody in it is told so and nothing of it is kept. For what is essential there is a reserve: on a
full disk it is given back, and the essential writes are made again without the others.

Reads that wait together see one snapshot, which holds every write that was acknowledged before.
"""

import sqlite3
from collections.abc import Callable, Sequence

from remit.kernel.store.failures import full_error, is_full, store_error
from remit.kernel.store.reserve import Reserve
from remit.kernel.store.worker import Job

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

    def forget(self) -> None:
        """Tell that whatever was remembered is stale: the file is another one, or was changed."""
        self.undone += 1
        self.lost += 1

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
                self.forget()
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
