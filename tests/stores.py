"""Stores for tests: the real one on a temporary path, opened when it is first used."""

import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import anyio

from remit.app.store import Store
from remit.errors import StoreError
from remit.kernel.audit.head import HeadTracker
from remit.kernel.store.database import Database
from remit.kernel.store.worker import Worker

_MOST_OPEN = 8


class TemporaryDatabase(Database):
    """A database that needs no `async with`: `close_all` closes it behind the test.

    One that outlives a test is opened again by the next one that uses it.
    """

    _opened: ClassVar[list["TemporaryDatabase"]] = []

    def __init__(self, *, clock: Callable[[], float] = lambda: 0.0) -> None:
        folder = tempfile.mkdtemp(prefix="remit-store-")
        super().__init__(str(Path(folder, "remit.db")), clock=clock)
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._opening: anyio.Lock | None = None
        self.refuses = False
        """Whether every write is refused, as by a disk that is full."""

    async def write(self, function: Any, **options: Any) -> Any:
        if self.refuses:
            raise StoreError("no space left")
        await self._ensure_open()
        return await super().write(function, **options)

    async def read(self, function: Any) -> Any:
        await self._ensure_open()
        return await super().read(function)

    async def _ensure_open(self) -> None:
        if self._writer is not None:
            return
        self._opening = self._opening or anyio.Lock()
        async with self._opening:
            if self._writer is None:
                with anyio.CancelScope(shield=True):
                    await self.__aenter__()
                self._opened.append(self)
                self.close_all(but=_MOST_OPEN)  # a test of hypothesis makes hundreds

    @classmethod
    def close_all(cls, *, but: int = 0) -> None:
        """Close all `but` the newest; the loop in which they were used may be gone."""
        while len(cls._opened) > but:
            database = cls._opened.pop(0)
            _stop(database._reader)
            _stop(database._writer)
            database._reader = database._writer = database._opening = None


class SqliteStore(Store):
    """All rows over a file that is opened and closed with them."""

    def __init__(self, path: str, *, head: HeadTracker | None = None, **options: Any) -> None:
        super().__init__(Database(path, **options), head=head)

    async def __aenter__(self) -> Self:
        await self.database.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.database.__aexit__(*exc)


class TemporaryStore(Store):
    """All rows over a temporary database."""

    database: TemporaryDatabase

    def __init__(self, *, clock: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(TemporaryDatabase(clock=clock))


def _stop(worker: Worker | None) -> None:
    if worker is not None:
        worker._closed = True
        worker._hand_over()
        worker._calls.put(None)
        worker._thread.join()
