"""A thread that runs functions on one database connection, many at a time.

The loop hands functions over and waits; the thread takes all that wait, up to a bound, runs them as
one batch and answers them all with one call back into the loop. So the loop never waits for a disk,
and the price of waking a thread is shared by everybody in the batch.

Promises: functions run in the order in which they were handed over; none is answered before its
batch is finished; every one is answered, also when a batch breaks; what was accepted before `close`
still runs.
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

MAX_BATCH = 256
MAX_WAITING = 4096
_RETRY_AFTER = 0.1

T = TypeVar("T")
Function = Callable[[sqlite3.Connection], T]


class Job:
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


RunBatch = Callable[[sqlite3.Connection, Sequence[Job]], None]


class Worker:
    """One connection and its thread. Make it inside the loop that will use it."""

    def __init__(self, name: str, connection: sqlite3.Connection, run_batch: RunBatch) -> None:
        self._connection = connection
        self._run_batch = run_batch
        # All that one turn of the loop hands over goes to the thread at once: a thread that is
        # woken for the first of them would commit it alone, and fight the rest for the interpreter.
        self._gathered: list[Job] = []
        self._jobs: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
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
        job = Job(function, done, is_single=is_single, is_essential=is_essential)
        self._waiting += 1
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append(job)
        await job.done
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    async def close(self) -> None:
        """Finish what was accepted, then close the connection. Closing twice is fine."""
        self._closed = True
        self._hand_over()
        self._jobs.put(None)
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._thread.join)

    def _hand_over(self) -> None:
        if self._gathered:
            self._jobs.put(self._gathered)
            self._gathered = []

    def _work(self) -> None:
        jobs = self._next_jobs()
        while jobs:
            batch, jobs = jobs[:MAX_BATCH], jobs[MAX_BATCH:]
            try:
                self._run_batch(self._connection, batch)
            except BaseException as error:
                _fail(batch, error)
            if not self._answer(batch):
                break
            jobs = jobs or self._next_jobs()
        self._connection.close()

    def _next_jobs(self) -> list[Job]:
        """All that wait; nothing when the end is reached."""
        jobs: list[Job] = []
        gathered = self._jobs.get()
        while gathered is not None:
            jobs += gathered
            try:
                gathered = self._jobs.get_nowait()
            except queue.Empty:
                return jobs
        if jobs:
            self._jobs.put(None)  # the end was reached: the next round shall see it too
        return jobs

    def _answer(self, batch: Sequence[Job]) -> bool:
        """Tell the loop; False when it is gone, and everybody who waited with it."""
        try:
            self._loop.call_soon_threadsafe(self._tell, batch)
        except RuntimeError:
            return False
        return True

    def _tell(self, batch: Sequence[Job]) -> None:
        self._waiting -= len(batch)
        for job in batch:
            if not job.done.cancelled():  # nobody waits for it any more
                job.done.set_result(None)


def _fail(batch: Sequence[Job], error: BaseException) -> None:
    """Tell everybody without an error of their own; what broke must not break the loop as well."""
    for job in batch:
        if job.error is None:
            job.error = StoreError(f"the store could not run this: {error!r}")
            job.error.__cause__ = error
