"""Bad files, bad disks and sudden death: nothing acknowledged is lost, and nothing hangs."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.stores import SqliteStore

from remit.errors import StoreError
from remit.kernel.audit.chain import AuditRow

CHILD = """
import sys, anyio
from tests.stores import SqliteStore

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


FLEET_CHILD = """
import sys, anyio
from remit.kernel.audit.chain import AuditEntry
from remit.kernel.store.records import AgentRecord
from tests.stores import SqliteStore

async def main():
    async with SqliteStore(sys.argv[1]) as store, anyio.create_task_group() as group:
        async def log(writer):
            number = 0
            while True:
                entry = AuditEntry(1.0, f"agent-{writer}", "a:b", "denied", "r", f"{number}", 1)
                row = await store.audit_append(entry)
                print("row", row.seq, row.hash, flush=True)
                number += 1
        async def spawn(writer):
            number = 0
            while True:
                key = f"{writer:020d}{number:020d}"
                record = AgentRecord(f"{writer}-{number}", None, 0, "p", key, "", 1.0, b"body")
                await store.agent_add(record)
                print("agent", record.id, key, flush=True)
                number += 1
        for writer in range(8):
            group.start_soon(log, writer)
            group.start_soon(spawn, writer)

anyio.run(main)
"""


def run_until_killed(code: str, path: str, lines: int) -> list[str]:
    """The lines that a child wrote before it was killed, which happens after `lines` of them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:  # noqa: S603 - the child is the subject
        assert child.stdout is not None
        acknowledged = [child.stdout.readline().strip() for _ in range(lines)]
        child.kill()
        # What it wrote before it died counts too; the very last line may be cut off.
        acknowledged += child.stdout.read().splitlines()[:-1]
    assert len(acknowledged) >= lines
    return acknowledged


@pytest.mark.parametrize("lines", [1, 50, 400])
async def test_an_acknowledged_write_survives_kill_9(tmp_path: Path, lines: int) -> None:
    path = str(tmp_path / "remit.db")
    acknowledged = run_until_killed(CHILD, path, lines)
    async with SqliteStore(path) as store:
        lost = [key for key in acknowledged if await store.state_get(key) is None]
    assert lost == []


@pytest.mark.parametrize("lines", [1, 50, 400, 1500])
async def test_after_kill_9_the_audit_chain_is_whole_and_no_agent_is_half_there(
    tmp_path: Path, lines: int
) -> None:
    path = str(tmp_path / "remit.db")
    words = [line.split() for line in run_until_killed(FLEET_CHILD, path, lines)]
    rows = {int(seq): head for kind, seq, head in words if kind == "row"}
    spawned = {name: key for kind, name, key in words if kind == "agent"}
    async with SqliteStore(path) as store:
        newest = rows[max(rows)] if rows else None
        verdict = await store.audit_verify(expected_head=newest)
        kept = {row.seq: row.hash async for row in every_row(store)}
        agents = {agent.id: agent.public_key for agent in await store.agent_list()}
        keys = await store.database.read(
            lambda c: c.execute("SELECT public_key FROM agent_key").fetchall()
        )
    assert verdict.ok, verdict.problem
    assert rows.items() <= kept.items()
    assert spawned.items() <= agents.items()
    assert {key for (key,) in keys} == set(agents.values())


async def every_row(store: SqliteStore) -> AsyncGenerator[AuditRow]:
    page = await store.audit_query()
    while page.items:
        for row in page.items:
            yield row
        page = await store.audit_query(before=page.items[-1].seq)


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


async def test_a_file_locked_by_somebody_else_is_an_error_that_passes(tmp_path: Path) -> None:
    path = str(tmp_path / "remit.db")
    async with SqliteStore(path, lock_wait=0.01) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(10), pytest.raises(StoreError, match="locked"):
                await store.state_set("k", 1, "a")
            assert await store.state_get("k") is None
        await store.state_set("k", 1, "a")
