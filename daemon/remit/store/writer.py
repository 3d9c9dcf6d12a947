"""Group commit: all writes that wait become one transaction, and one wait for the disk.

Each write runs in a savepoint of its own, so one that fails is undone alone; a single statement
needs none, because SQLite undoes it by itself. Nobody is answered before the commit, so an
acknowledged write is on the disk. When the transaction itself fails (disk full, file locked),
everybody in it is told so and nothing of it is kept.
"""

import sqlite3
from collections.abc import Sequence

from remit.store.failures import store_error
from remit.store.worker import Job


class GroupCommit:
    """Runs batches of writes; `commits` counts the transactions that reached the disk.

    `undone` changes whenever anything was rolled back, so that what a write remembers of the
    database outside of it can be told to be stale. Only the writing thread may compare it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.commits = 0
        self.undone = 0

    def __call__(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        """Run all jobs in one transaction, or fail them all."""
        try:
            try:
                connection.execute("BEGIN IMMEDIATE")
                for job in jobs:
                    self._run_alone(connection, job)
                connection.execute("COMMIT")
            except BaseException:
                self.undone += 1
                raise
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            _fail(jobs, self._path, error)
        else:
            self.commits += 1

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
