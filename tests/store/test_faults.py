"""Bad files, bad disks and sudden death: nothing acknowledged is lost, and nothing hangs."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from remit.errors import StoreError
from remit.store.sqlite import SqliteStore

CHILD = """
import sys, anyio
from remit.store.sqlite import SqliteStore

async def main():
    async with SqliteStore(sys.argv[1]) as store, anyio.create_task_group() as group:
        async def write(writer):
            number = 0
            while True:
                await store.state_set(f"{writer}/{number}", number, "child")
                print(f"{writer}/{number}", flush=True)
                number += 1
        for writer in range(8):
            group.start_soon(write, writer)

anyio.run(main)
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    async with SqliteStore(str(tmp_path / "remit.db")) as opened:
        yield opened


@pytest.mark.parametrize("lines", [1, 50, 400])
async def test_an_acknowledged_write_survives_kill_9(tmp_path: Path, lines: int) -> None:
    path = str(tmp_path / "remit.db")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CHILD, path]
    with subprocess.Popen(  # noqa: ASYNC220, S603 - the child is the subject of the test
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        acknowledged = [child.stdout.readline().strip() for _ in range(lines)]
        child.kill()
        # What it wrote before it died counts too; the very last line may be cut off.
        acknowledged += child.stdout.read().splitlines()[:-1]
    async with SqliteStore(path) as store:
        lost = [key for key in acknowledged if await store.state_get(key) is None]
    assert len(acknowledged) >= lines
    assert lost == []


async def refused(path: Path) -> StoreError:
    with anyio.fail_after(10), pytest.raises(StoreError) as caught:
        async with SqliteStore(str(path)):
            pytest.fail("it opened")
    return caught.value


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "remit.db"
    path.write_bytes(b"this is a letter to my aunt\n" * 100)
    error = await refused(path)
    assert "not a database" in error.message
    assert error.hint
    assert path.read_bytes().startswith(b"this is a letter")


async def test_a_damaged_database_is_an_error_and_not_a_hang(tmp_path: Path) -> None:
    path = tmp_path / "remit.db"
    async with SqliteStore(str(path)) as store:
        for number in range(200):
            await store.state_set(f"k{number}", "x" * 500, "a")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with anyio.fail_after(10), pytest.raises(StoreError, match="damaged"):
        async with SqliteStore(str(path)) as store:
            await store.state_list()


@pytest.mark.parametrize(
    "place", ["/proc/remit.db", "/nowhere/at/all/remit.db"], ids=["unwritable", "missing"]
)
async def test_a_directory_that_cannot_be_written_is_an_error_that_names_it(place: str) -> None:
    error = await refused(Path(place))
    assert place in error.message
    assert "directory" in error.hint


async def test_a_directory_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    await refused(tmp_path)


@pytest.mark.parametrize("name", ["a b.db", "ä?mode=memory#x%41.db"])
async def test_a_path_may_hold_any_character(tmp_path: Path, name: str) -> None:
    async with SqliteStore(str(tmp_path / name)) as store:
        await store.state_set("k", 1, "a")
    assert (tmp_path / name).is_file()


async def test_a_full_disk_refuses_writes_while_reads_go_on_and_then_recovers(
    store: SqliteStore,
) -> None:
    await store.state_set("k", "kept", "a")
    await store.write(set_page_limit("page_count"))
    with pytest.raises(StoreError, match="full") as caught:
        await store.state_set("big", "x" * 100_000, "a")
    assert "free some space" in caught.value.hint
    entry = await store.state_get("k")
    assert entry is not None
    assert entry.value == "kept"
    await store.write(set_page_limit("1000000"))
    await store.state_set("big", "x" * 100_000, "a")


def set_page_limit(limit: str) -> Callable[[sqlite3.Connection], None]:
    """SQLite's own way to run out of room; `page_count` means that not one page is left."""

    def write(connection: sqlite3.Connection) -> None:
        pages = limit
        if limit == "page_count":
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    return write


async def test_a_file_locked_by_somebody_else_is_an_error_that_passes(tmp_path: Path) -> None:
    path = str(tmp_path / "remit.db")
    async with SqliteStore(path, lock_wait=0.01) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(10), pytest.raises(StoreError, match="locked"):
                await store.state_set("k", 1, "a")
            assert await store.state_get("k") is None
        await store.state_set("k", 1, "a")
