"""Holding the writer up, so that a test decides what shares a transaction."""

import sqlite3
import threading

from anyio import to_thread
from anyio.lowlevel import checkpoint


class Gate:
    """A write that keeps the writer busy until it is opened, so that others gather behind it."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._entered = threading.Event()

    def open(self) -> None:
        self._opened.set()

    async def entered(self) -> None:
        """Wait until the writer is inside: what comes from now on shares a later transaction."""
        assert await to_thread.run_sync(self._entered.wait, 10)

    def __call__(self, connection: sqlite3.Connection) -> None:
        self._entered.set()
        assert self._opened.wait(10)


async def let_all_start() -> None:
    for _ in range(3):
        await checkpoint()
