"""Group commit: one wait for the disk, each write on its own feet."""

import sqlite3
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from tests.kernel.store.gate import Gate, let_all_start
from tests.stores import SqliteStore

from remit.errors import StoreError
from remit.kernel.store.worker import MAX_WAITING


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    async with SqliteStore(str(tmp_path / "remit.db")) as opened:
        yield opened


async def set_key(store: SqliteStore, key: str) -> None:
    await store.state_set(key, 1, "a")


async def test_writes_that_wait_together_share_one_commit(store: SqliteStore) -> None:
    gate = Gate()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(store.database.write, gate)
            await let_all_start()
            for number in range(64):
                group.start_soon(set_key, store, f"k{number}")
            await let_all_start()
            gate.open()
    assert store.database.commits <= 2
    assert (await store.state_list("k")).total == 64


async def test_nobody_is_answered_before_the_commit(store: SqliteStore, tmp_path: Path) -> None:
    gate = Gate()
    answered: list[str] = []

    async def write() -> None:
        await set_key(store, "early")
        answered.append("early")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(store.database.write, gate)
            group.start_soon(write)
            await let_all_start()
            assert answered == []
            assert (await store.state_list()).total == 0
            gate.open()
    assert answered == ["early"]


def broken(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM state")
    raise ZeroDivisionError


def wrong_sql(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM state")
    connection.execute("INSERT INTO state_floor VALUES (2, 2)")


@pytest.mark.parametrize(("bad", "error"), [(broken, ZeroDivisionError), (wrong_sql, StoreError)])
async def test_a_write_that_fails_is_undone_alone(
    store: SqliteStore, bad: Gate, error: type[Exception]
) -> None:
    gate = Gate()

    async def fail() -> None:
        with pytest.raises(error):
            await store.database.write(bad)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(store.database.write, gate)
            group.start_soon(set_key, store, "before")
            group.start_soon(fail)
            group.start_soon(set_key, store, "after")
            await let_all_start()
            gate.open()
    assert [entry.key for entry in (await store.state_list()).items] == ["after", "before"]
    assert store.database.commits <= 2


async def test_a_single_statement_that_fails_is_undone_alone_without_a_savepoint(
    store: SqliteStore,
) -> None:
    def insert_twice(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO blob (name, data) VALUES ('new', x''), ('twice', x''), ('twice', x'')"
        )

    async def fail() -> None:
        with pytest.raises(StoreError, match="UNIQUE"):
            await store.database.write(insert_twice, is_single=True)

    gate = Gate()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(store.database.write, gate)
            group.start_soon(set_key, store, "before")
            group.start_soon(fail)
            group.start_soon(set_key, store, "after")
            await let_all_start()
            gate.open()
    assert await store.blob_get("new") is None
    assert (await store.state_list()).total == 2
    assert store.database.commits <= 2


async def test_a_cancelled_caller_leaves_its_neighbours_alone(store: SqliteStore) -> None:
    gate = Gate()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(store.database.write, gate)
            with anyio.move_on_after(0):
                await set_key(store, "cancelled")
            group.start_soon(set_key, store, "neighbour")
            await let_all_start()
            gate.open()
        assert await store.state_get("neighbour") is not None


async def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    path = str(tmp_path / "remit.db")
    gate = Gate()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group, SqliteStore(path) as store:
            group.start_soon(store.database.write, gate)
            for number in range(300):
                group.start_soon(set_key, store, f"k{number}")
            await let_all_start()
            gate.open()
        async with SqliteStore(path) as store:
            assert (await store.state_list()).total == 300


async def test_a_full_queue_refuses_with_a_retry_time_and_recovers(store: SqliteStore) -> None:
    gate = Gate()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(MAX_WAITING):
                group.start_soon(store.database.write, gate)
            await let_all_start()
            with pytest.raises(StoreError) as caught:
                await set_key(store, "one too many")
            assert caught.value.details["retry_after"] > 0
            gate.open()
        await set_key(store, "later")


async def test_a_closed_store_and_one_never_opened_say_so(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "remit.db"))
    with pytest.raises(StoreError, match="not open"):
        await store.state_get("k")
    async with store:
        pass
    with pytest.raises(StoreError, match="closed"):
        await store.state_set("k", 1, "a")


async def test_a_read_error_reaches_its_caller_only(store: SqliteStore) -> None:
    with pytest.raises(StoreError):
        await store.database.read(lambda connection: connection.execute("DELETE FROM state"))
    with pytest.raises(StoreError):
        await store.database.read(lambda connection: connection.execute("SELECT no_such_column"))
    assert (await store.state_list()).total == 0


def quit_everything(connection: sqlite3.Connection) -> None:
    raise SystemExit


async def test_a_write_that_wants_to_end_the_process_does_not_end_the_writer(
    store: SqliteStore,
) -> None:
    with anyio.fail_after(10):
        with pytest.raises(StoreError, match="SystemExit"):
            await store.database.write(quit_everything)
        await set_key(store, "later")


def test_a_loop_that_ends_without_closing_the_store_leaves_no_thread(tmp_path: Path) -> None:
    gate = Gate()
    threads: list[threading.Thread] = []

    async def forget_to_close() -> None:
        before = set(threading.enumerate())
        store = await SqliteStore(str(tmp_path / "remit.db")).__aenter__()
        threads.extend(set(threading.enumerate()) - before)
        for use in (store.database.write, store.database.read):
            with anyio.move_on_after(0):
                await use(gate)

    anyio.run(forget_to_close)
    gate.open()
    for thread in threads:
        if thread.name.startswith("remit-store"):
            thread.join(10)
            assert not thread.is_alive()
