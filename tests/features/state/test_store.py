"""What the store remembers of everybody's part of the state is what is in the table."""

import sqlite3
from pathlib import Path

import anyio
import pytest
from tests.stores import SqliteStore

from remit.errors import LimitError, StoreError
from remit.features.state.store import StateQuota, StateRows
from remit.kernel.store.database import Database

TWO = StateQuota(keys=2)


async def test_a_restart_remembers_who_has_what(tmp_path: Path) -> None:
    path = str(tmp_path / "remit.db")
    async with SqliteStore(path) as store:
        for key in ("a", "b"):
            await store.state_set(key, 1, "ann")
    async with SqliteStore(path) as store:
        with pytest.raises(LimitError):
            await store.state_set("c", 1, "ann", quota=TWO)
        await store.state_delete("a")
        await store.state_set("c", 1, "ann", quota=TWO)


async def test_what_a_lost_transaction_wrote_counts_for_nothing(tmp_path: Path) -> None:
    def crash(connection: sqlite3.Connection) -> None:
        raise SystemExit

    async with SqliteStore(str(tmp_path / "remit.db")) as store:
        await store.state_set("a", 1, "ann", quota=TWO)

        async def lost(key: str) -> None:
            with pytest.raises(StoreError):
                await store.state_set(key, 1, "ann", quota=StateQuota(keys=9))

        async def fail() -> None:
            with pytest.raises(StoreError):
                await store.database.write(crash)

        async with anyio.create_task_group() as tasks:  # they wait together, so they are one batch
            for key in ("b", "c", "d"):
                tasks.start_soon(lost, key)
            tasks.start_soon(fail)
        await store.state_set("e", 1, "ann", quota=TWO)
        with pytest.raises(LimitError):
            await store.state_set("f", 1, "ann", quota=TWO)


async def test_whoever_looks_at_a_database_remembers_the_same(tmp_path: Path) -> None:
    async with Database(str(tmp_path / "remit.db")) as database:
        first, second = StateRows(database), StateRows(database)
        await first.state_set("a", 1, "ann", quota=TWO)
        await second.state_set("b", 1, "ann", quota=TWO)
        with pytest.raises(LimitError):
            await first.state_set("c", 1, "ann", quota=TWO)
        await second.state_delete("a")
        await first.state_set("c", 1, "ann", quota=TWO)
