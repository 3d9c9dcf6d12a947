"""A full disk: writes are refused, reads go on, and it recovers by itself."""

import sqlite3
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.rows import agent, audit_entry, public_key
from tests.stores import SqliteStore

from remit.errors import StoreError
from remit.kernel.store.disk import Reserve


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    async with SqliteStore(str(tmp_path / "remit.db")) as opened:
        yield opened


async def test_a_full_disk_refuses_writes_while_reads_go_on_and_then_recovers(
    store: SqliteStore,
) -> None:
    await store.state_set("k", "kept", "a")
    await store.database.write(set_page_limit("page_count"))
    with pytest.raises(StoreError, match="full") as caught:
        await store.state_set("big", "x" * 100_000, "a")
    assert "free some space" in caught.value.hint
    entry = await store.state_get("k")
    assert entry is not None
    assert entry.value == "kept"
    await store.database.write(set_page_limit("1000000"))
    await store.state_set("big", "x" * 100_000, "a")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own words
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607 - our own words


def is_full(store: SqliteStore) -> bool:
    return store.is_full


def fill(path: Path) -> None:
    """Take all the room that is left."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            pass


async def test_on_a_disk_that_is_really_full_the_fleet_is_still_readable_and_then_recovers(
    small_disk: Path,
) -> None:
    async with SqliteStore(str(small_disk / "remit.db")) as store:
        await store.agent_add(agent("kept", 1))
        kept = await store.audit_append(audit_entry(0))
        fill(small_disk / "ballast")
        for attempt in range(3):
            with anyio.fail_after(10), pytest.raises(StoreError, match=r"full|disk"):
                await store.agent_add(agent(f"refused-{attempt}", 2))
            with anyio.fail_after(10), pytest.raises(StoreError, match=r"full|disk"):
                await store.audit_append(audit_entry(1))
        assert [a.id for a in await store.agent_list()] == ["kept"]
        assert (await store.audit_query()).items == (kept,)
        assert (await store.audit_verify()).rows == 1
        (small_disk / "ballast").unlink()
        await store.agent_add(agent("later", 2))
        assert (await store.audit_append(audit_entry(1))).seq == 2
        assert (await store.audit_verify(expected_head=kept.hash)).ok


async def test_a_reserve_lets_a_full_disk_take_rights_away_and_write_denials(
    small_disk: Path,
) -> None:
    path, reserve = str(small_disk / "remit.db"), small_disk / "reserve"
    async with SqliteStore(path, reserve=Reserve(reserve, 1_000_000)) as store:
        await store.key_add("eve", public_key(1), "worker")
        await store.agent_add(agent("kid", 2))
        fill(small_disk / "ballast")
        with pytest.raises(StoreError, match="full"):
            await store.state_set("big", "x" * 100_000, "a")
        assert is_full(store)
        for number in range(500):
            await store.audit_append(audit_entry(number, reason="x" * 200), is_essential=True)
            with pytest.raises(StoreError, match="full"):
                await store.audit_append(audit_entry(number))
        with pytest.raises(StoreError, match="full"):
            await store.state_set("k", 1, "a")
        assert (await store.key_revoke("eve")).name == "eve"
        assert await store.agent_remove(["kid"]) == 1
    async with SqliteStore(path, reserve=Reserve(reserve, 1_000_000)) as store:
        assert is_full(store)
        assert (await store.key_list(), await store.agent_list()) == ((), ())
        assert (await store.audit_verify()).rows == 500
        (small_disk / "ballast").unlink()
        with anyio.fail_after(10):
            while is_full(store):
                with suppress(StoreError):
                    await store.state_set("k", 1, "a")
        assert reserve.stat().st_size == 1_000_000


async def test_what_is_essential_is_kept_of_a_commit_that_fills_the_disk(small_disk: Path) -> None:
    path, reserve = str(small_disk / "remit.db"), Reserve(small_disk / "reserve", 1_000_000)
    async with SqliteStore(path, reserve=reserve) as store:
        fill(small_disk / "ballast")
        outcomes: dict[str, str] = {}

        async def write(name: str, call: Callable[[], Awaitable[object]]) -> None:
            try:
                await call()
                outcomes[name] = "kept"
            except StoreError as error:
                outcomes[name] = str(error.details.get("sqlite"))

        async with anyio.create_task_group() as tasks:
            big = partial(store.state_set, "big", "x" * 100_000, "a")
            tasks.start_soon(write, "big", big)
            denial = partial(store.audit_append, audit_entry(1), is_essential=True)
            tasks.start_soon(write, "denial", denial)
        assert outcomes == {"big": "SQLITE_FULL", "denial": "kept"}
        assert (await store.audit_verify()).rows == 1


async def test_a_full_disk_breaks_neither_the_chain_nor_the_agents(store: SqliteStore) -> None:
    await store.audit_append(audit_entry(0))
    await store.database.write(set_page_limit("page_count"))
    refused = 0
    for number in range(200):
        try:
            await store.audit_append(audit_entry(number, reason="x" * 500))
            await store.agent_add(agent(f"a{number}", number))
        except StoreError:
            refused += 1
    assert refused > 0
    await store.database.write(set_page_limit("1000000"))
    await store.audit_append(audit_entry(1))
    assert (await store.audit_verify()).ok


def set_page_limit(limit: str) -> Callable[[sqlite3.Connection], None]:
    """SQLite's own way to run out of room; `page_count` means that not one page is left."""

    def write(connection: sqlite3.Connection) -> None:
        pages = limit
        if limit == "page_count":
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    return write
