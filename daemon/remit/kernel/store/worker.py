"""A thread that runs functions on one database connection, many at a time, and how a batch is run.

The loop hands functions over and waits; the thread takes all that wait, up to a bound, runs them as
one batch and answers them all with one call back into the loop. So the loop never waits for a disk,
and the price of waking a thread is shared by everybody in the batch.

Promises: functions run in the order in which they were handed over; none is answered before its
batch is finished; every one is answered, also when a batch breaks; what was accepted before `close`
still runs.

Group commit: all writes that wait become one transaction, and one wait for the disk. Each write
runs in a savepoint of its own, so one that fails is undone alone; a single statement needs none,
because SQLite undoes it by itself. Nobody is answered before the commit, so an acknowledged write
is on the disk. When the transaction itself fails (disk full, file locked), everybody in it is told
so and nothing of it is kept. For what is essential there is a reserve: on a full disk it is given
back, and the essential writes are made again without the others.

Reads that wait together see one snapshot, which holds every write that was acknowledged before.
"""

# asyncio's own futures wake 64 callers 1.25x faster than anyio's events, and this is the path of
# every write; anyio's scopes cancel a future that is awaited as they cancel everything else.
import asyncio  # noqa: TID251
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from remit.errors import StoreError
from remit.kernel.store.disk import Reserve, full_error, is_full, store_error

_CHECKPOINT_PAGES = 1000
_CHECKPOINT_PAGES_FULL = 16
MAX_BATCH = 256
MAX_WAITING = 4096
_RETRY_AFTER = 0.1

T = TypeVar("T")
Function = Callable[[sqlite3.Connection], T]


class QueuedCall:
    """A function on its way through the thread; `result` counts only while `error` is None."""

    __slots__ = ("done", "error", "function", "is_essential", "is_single", "result")

    def __init__(
        self,
        function: Function[Any],
        done: "asyncio.Future[None]",
        *,
        is_single: bool,
        is_essential: bool,
    ) -> None:
        self.function = function
        self.done = done
        self.is_single = is_single
        self.is_essential = is_essential
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        """Run the function and remember how it ended."""
        try:
            self.result = self.function(connection)
        except Exception as error:
            self.error = error


RunBatch = Callable[[sqlite3.Connection, Sequence[QueuedCall]], None]


class Worker:
    """One connection and its thread. Make it inside the loop that will use it."""

    def __init__(self, name: str, connection: sqlite3.Connection, run_batch: RunBatch) -> None:
        self._connection = connection
        self._run_batch = run_batch
        # All that one turn of the loop hands over goes to the thread at once: a thread that is
        # woken for the first of them would commit it alone, and fight the rest for the interpreter.
        self._gathered: list[QueuedCall] = []
        self._calls: queue.SimpleQueue[list[QueuedCall] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._closed = False
        self._loop = asyncio.get_running_loop()
        # A daemon thread: a crash elsewhere must not leave a process that never ends.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(
        self, function: Function[T], *, is_single: bool = False, is_essential: bool = False
    ) -> T:
        """Run `function` in the thread and give back what it returned or raised.

        A caller that is cancelled while it waits does not stop the function: it may still run.
        `is_single` promises that it ends with the one statement by which it changes anything, and
        `is_essential` means that room is kept for it on the disk; it may be run a second time.

        Raises:
            StoreError: too many wait already, or the worker is closed.
        """
        if self._closed:
            raise StoreError("the store is closed", hint="the daemon is stopping; try again later")
        if self._waiting >= MAX_WAITING:
            raise StoreError(
                f"the store has {self._waiting:,} requests waiting",
                hint=f"try again in {_RETRY_AFTER} s",
                details={"retry_after": _RETRY_AFTER},
            )
        done = self._loop.create_future()
        call = QueuedCall(function, done, is_single=is_single, is_essential=is_essential)
        self._waiting += 1
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append(call)
        await call.done
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    async def close(self) -> None:
        """Finish what was accepted, then close the connection. Closing twice is fine."""
        self._closed = True
        self._hand_over()
        self._calls.put(None)
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._thread.join)

    def _hand_over(self) -> None:
        if self._gathered:
            self._calls.put(self._gathered)
            self._gathered = []

    def _work(self) -> None:
        calls = self._next_calls()
        while calls:
            batch, calls = calls[:MAX_BATCH], calls[MAX_BATCH:]
            try:
                self._run_batch(self._connection, batch)
            except BaseException as error:
                _fail(batch, error)
            if not self._answer(batch):
                break
            calls = calls or self._next_calls()
        self._connection.close()

    def _next_calls(self) -> list[QueuedCall]:
        """All that wait; nothing when the end is reached."""
        calls: list[QueuedCall] = []
        gathered = self._calls.get()
        while gathered is not None:
            calls += gathered
            try:
                gathered = self._calls.get_nowait()
            except queue.Empty:
                return calls
        if calls:
            self._calls.put(None)  # the end was reached: the next round shall see it too
        return calls

    def _answer(self, batch: Sequence[QueuedCall]) -> bool:
        """Tell the loop; False when it is gone, and everybody who waited with it."""
        try:
            self._loop.call_soon_threadsafe(self._tell, batch)
        except RuntimeError:
            return False
        return True

    def _tell(self, batch: Sequence[QueuedCall]) -> None:
        self._waiting -= len(batch)
        for call in batch:
            if not call.done.cancelled():  # nobody waits for it any more
                call.done.set_result(None)


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

    def __call__(self, connection: sqlite3.Connection, calls: Sequence[QueuedCall]) -> None:
        """Run all calls in one transaction, or fail them all; on a full disk the essential ones."""
        if self._reserve.is_spent:
            calls = self._admit(connection, calls)
        error = self._commit(connection, calls)
        if error is not None and is_full(error) and self._reserve.release():
            self._spare(connection)
            _fail_all([call for call in calls if not call.is_essential], self._path, error)
            calls = [call for call in calls if call.is_essential]
            for call in calls:
                call.error = call.result = None
            error = self._commit(connection, calls)
        if error is not None:
            _fail_all(calls, self._path, error)

    def _admit(
        self, connection: sqlite3.Connection, calls: Sequence[QueuedCall]
    ) -> Sequence[QueuedCall]:
        """Those that may be written now: all when there is room again, else the essential ones."""
        if self._reserve.can_write():
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            return calls
        for call in calls:
            if not call.is_essential:
                call.error = full_error(self._path)
        return [call for call in calls if call.is_essential]

    def _spare(self, connection: sqlite3.Connection) -> None:
        """Let the log grow as little as it can: what it holds goes into the file soon."""
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES_FULL}")
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error:  # the commit that follows tells better what is wrong
            return

    def _commit(
        self, connection: sqlite3.Connection, calls: Sequence[QueuedCall]
    ) -> sqlite3.Error | None:
        try:
            try:
                connection.execute("BEGIN IMMEDIATE")
                for call in calls:
                    self._run_alone(connection, call)
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

    def _run_alone(self, connection: sqlite3.Connection, call: QueuedCall) -> None:
        if not call.is_single:
            connection.execute("SAVEPOINT call")
        call.run(connection)
        if call.error is not None:
            self._undo(connection, call)
        if not call.is_single:
            connection.execute("RELEASE call")

    def _undo(self, connection: sqlite3.Connection, call: QueuedCall) -> None:
        if isinstance(call.error, sqlite3.Error):
            if not connection.in_transaction:
                # SQLite gave up the whole transaction (disk full, read error): so must we.
                error, call.error = call.error, None
                raise error
            call.error = store_error(self._path, call.error)
        self.undone += 1
        if not call.is_single:
            connection.execute("ROLLBACK TO call")


class SnapshotRead:
    """Runs batches of reads, all on one snapshot that is newer than every acknowledged write."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, connection: sqlite3.Connection, calls: Sequence[QueuedCall]) -> None:
        """Run all calls; one that fails does not harm the others."""
        try:
            try:
                connection.execute("BEGIN")
                for call in calls:
                    call.run(connection)
                    if isinstance(call.error, sqlite3.Error):
                        call.error = store_error(self._path, call.error)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            _fail_all(calls, self._path, error)


def _fail(batch: Sequence[QueuedCall], error: BaseException) -> None:
    """Tell everybody without an error of their own; what broke must not break the loop as well."""
    for call in batch:
        if call.error is None:
            call.error = StoreError(f"the store could not run this: {error!r}")
            call.error.__cause__ = error


def _fail_all(calls: Sequence[QueuedCall], path: str, error: sqlite3.Error) -> None:
    """Tell everybody who has no error of their own; an error object is never shared."""
    for call in calls:
        if call.error is None:
            call.error = store_error(path, error)
