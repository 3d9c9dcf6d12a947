"""Denials that repeat: the first is a row of the audit at once, those that follow are counted.

Denials of one agent, event, reason and session go under one decision. The counts are written as one
further row at the end of each window; a window without a repeat ends the count, and the next denial
is a row of its own again. So a flood costs the disk one row a window. A clean end of the daemon
writes what is counted; a kill loses the counts of the open window, and the first row is there.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
import structlog

from remit.errors import RemitError
from remit.model.event import Denial

log = structlog.get_logger()

WINDOW = 10.0
_MOST_ITEMS = 16
_MOST_WINDOWS = 20_000
_AT_ONCE = 256


class Write(Protocol):
    """Makes a row of the audit of a denial; raises a RemitError when it cannot."""

    async def __call__(
        self, denial: Denial, decision: str, revision: int, details: dict[str, Any]
    ) -> None:
        """Write it."""


class _Window:
    """The repeats of one denial that are not written yet."""

    def __init__(self, denial: Denial, decision: str) -> None:
        self.denial = denial
        self.decision = decision
        self.revision = 0
        self.is_written = False
        self.settled = anyio.Event()
        self.begin()

    def begin(self) -> None:
        self.count = 0
        self.first_at = self.last_at = 0.0
        self.items: Counter[str] = Counter()

    def add(self, denial: Denial, revision: int, now: float) -> None:
        """Count a repeat."""
        self.first_at = self.first_at if self.count else now
        self.last_at = now
        self.count += 1
        self.revision = revision
        item = denial.item or denial.event
        if item in self.items or len(self.items) < _MOST_ITEMS:
            self.items[item] += 1

    def details(self) -> dict[str, Any]:
        """What a row says of the repeats: how many, when, and of what if that differs."""
        found: dict[str, Any] = {
            "count": self.count,
            "first_at": self.first_at,
            "last_at": self.last_at,
        }
        others = self.count - self.items.total()
        if others or set(self.items) != {self.denial.item or self.denial.event}:
            found["asked"] = dict(self.items)
        return self.denial.details | found | ({"others": others} if others else {})


class Denials:
    """Writes denials, or counts them."""

    def __init__(self, write: Write, clock: Callable[[], float], *, window: float = WINDOW) -> None:
        """Start counting.

        Args:
            write: makes a row.
            clock: the wall clock.
            window: seconds after which counts become a row.
        """
        self._write = write
        self._clock = clock
        self._window = window
        self._windows: dict[tuple[str, str, str], _Window] = {}
        self.counted = 0
        """How many denials were counted instead of written one by one."""
        self.is_scarce: Callable[[], bool] = lambda: False
        """Whether room is short: then all denials of one agent are repeats of each other."""

    def repeat(self, denial: Denial, revision: int) -> str | None:
        """Count a denial like one that is a row already, and answer its decision; else None."""
        window = self._windows.get(self._key(denial))
        if window is None or not window.settled.is_set():
            return None
        self._count(window, denial, revision)
        return window.decision

    async def record(self, denial: Denial, decision: str, revision: int) -> str:
        """Write a denial, or count it behind one like it; answers the decision it goes under.

        It never fails: what cannot be written now is counted, and written when it can be.
        """
        key = self._key(denial)
        window = self._windows.get(key)
        if window is not None:
            self._count(window, denial, revision)
            await window.settled.wait()
            return window.decision
        window = self._windows[key] = _Window(denial, decision)
        try:
            with anyio.CancelScope(shield=True):  # a caller that goes away keeps no row out
                await self._write(denial, decision, revision, denial.details)
        except RemitError as error:
            window.add(denial, revision, self._clock())
            log.warning("audit_failed", problem=error.message, decision=decision)
        finally:
            window.settled.set()
        return decision

    async def flush(self) -> None:
        """Write all counts; forget what was not repeated."""
        settled = [(key, one) for key, one in self._windows.items() if one.settled.is_set()]
        for key, window in settled:
            if not window.count:
                del self._windows[key]
        due = [window for _, window in settled if window.count]
        for start in range(0, len(due), _AT_ONCE):
            async with anyio.create_task_group() as tasks:
                for window in due[start : start + _AT_ONCE]:
                    tasks.start_soon(self._flush, window)

    @asynccontextmanager
    async def flushing(self) -> AsyncGenerator[None]:
        """Write counts at the end of each window, and all of them at the end of this."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._flush_often)
                yield
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.flush()

    async def _flush_often(self) -> None:
        while True:
            await anyio.sleep(self._window)
            await self.flush()

    async def _flush(self, window: _Window) -> None:
        details, count, items = window.details(), window.count, window.items
        first_at = window.first_at
        window.begin()
        try:
            with anyio.CancelScope(shield=True):
                await self._write(window.denial, window.decision, window.revision, details)
        except RemitError as error:
            window.last_at = window.last_at if window.count else details["last_at"]
            window.first_at = first_at
            window.count += count
            window.items.update(items)
            log.warning("audit_failed", problem=error.message, decision=window.decision)

    def _count(self, window: _Window, denial: Denial, revision: int) -> None:
        self.counted += 1
        window.add(denial, revision, self._clock())

    def _key(self, denial: Denial) -> tuple[str, str, str]:
        if len(self._windows) >= _MOST_WINDOWS or self.is_scarce():
            return denial.principal, "", ""
        return denial.principal, denial.group or denial.event, denial.reason
