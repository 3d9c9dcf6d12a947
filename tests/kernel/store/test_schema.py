"""A database is only touched by a program that knows its tables."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.stores import SqliteStore

from remit.errors import StoreError
from remit.kernel.store.database import Migration, migrate, read_migrations

FIRST = Migration(
    1, "0001_one", "CREATE TABLE one (a TEXT);\n-- a; comment\nCREATE TABLE two (b TEXT);"
)
SECOND = Migration(2, "0002_two", "ALTER TABLE one ADD COLUMN c TEXT")
BROKEN = Migration(2, "0002_broken", "CREATE TABLE three (a TEXT);\nCREATE TABLE one (a TEXT);")


def run(path: Path, *steps: Migration) -> tuple[int, ...]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return migrate(connection, str(path), steps)


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def test_a_fresh_database_gets_every_step(tmp_path: Path) -> None:
    assert run(tmp_path / "db", FIRST, SECOND) == (1, 2)
    assert tables(tmp_path / "db") == {"migration", "one", "two"}


def test_a_database_that_is_up_to_date_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path / "db", FIRST)
    assert run(tmp_path / "db", FIRST) == ()


def test_only_the_missing_steps_are_applied(tmp_path: Path) -> None:
    run(tmp_path / "db", FIRST)
    assert run(tmp_path / "db", FIRST, SECOND) == (2,)


def test_a_step_that_fails_leaves_nothing_of_itself(tmp_path: Path) -> None:
    run(tmp_path / "db", FIRST)
    with pytest.raises(sqlite3.OperationalError):
        run(tmp_path / "db", FIRST, BROKEN)
    assert "three" not in tables(tmp_path / "db")
    assert run(tmp_path / "db", FIRST, SECOND) == (2,)


def test_a_database_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "db", FIRST, SECOND)
    with pytest.raises(StoreError, match="newer remit") as caught:
        run(tmp_path / "db", FIRST)
    assert "upgrade" in caught.value.hint


def test_a_step_that_was_changed_after_it_was_applied_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "db", FIRST)
    changed = Migration(1, "0001_one", FIRST.sql + " ")
    with pytest.raises(StoreError, match="0001_one"):
        run(tmp_path / "db", changed)


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "db")) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")
    with pytest.raises(StoreError, match="another program"):
        run(tmp_path / "db", FIRST)
    assert tables(tmp_path / "db") == {"diary"}


def test_the_shipped_steps_are_numbered_without_a_gap() -> None:
    numbers = [step.number for step in read_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_line_ends_do_not_change_a_checksum(tmp_path: Path) -> None:
    for name, ends in (("unix", b"\n"), ("windows", b"\r\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0001_a.sql").write_bytes(b"CREATE TABLE a (b TEXT);" + ends)
    (unix,) = read_migrations(tmp_path / "unix")
    (windows,) = read_migrations(tmp_path / "windows")
    assert unix.checksum == windows.checksum


async def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    path = str(tmp_path / "remit.db")
    async with SqliteStore(path) as store:
        await store.state_set("k", {"a": [1]}, "agent-1")
        key = await store.key_add("a", "0" * 40, "p")
    async with SqliteStore(path) as store:
        entry = await store.state_get("k")
        assert entry is not None
        assert (entry.value, entry.updated_by) == ({"a": [1]}, "agent-1")
        assert await store.key_get("a") == key
