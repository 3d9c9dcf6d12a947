"""The audit log in a file that somebody else can reach: what was done to it is found."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.kernel.store.gate import Gate, let_all_start
from tests.rows import audit_entry
from tests.stores import SqliteStore

from remit.errors import ConflictError, StoreError
from remit.kernel.audit.chain import AuditRow, AuditVerdict, check_entry
from remit.kernel.audit.store import AuditRows
from remit.kernel.store.database import Database

GUARDS = (
    "audit_is_never_changed",
    "audit_is_only_rotated",
    "audit_anchor_moves_along_the_chain",
)


@pytest.fixture
async def path(tmp_path: Path) -> str:
    """A log of ten rows, closed."""
    place = str(tmp_path / "remit.db")
    async with SqliteStore(place) as store:
        for number in range(10):
            await store.audit_append(audit_entry(number))
    return place


def tamper(path: str, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as intruder:
        for guard in GUARDS:
            intruder.execute(f"DROP TRIGGER IF EXISTS {guard}")
        for statement in statements:
            intruder.execute(statement)


async def verify(path: str, *, expected_head: str | None = None) -> AuditVerdict:
    async with SqliteStore(path) as store:
        return await store.audit_verify(expected_head=expected_head)


@pytest.mark.parametrize(
    "change",
    [
        "at = at + 1",
        "principal = 'somebody else'",
        "event = 'state:get'",
        "outcome = 'allowed'",
        "reason = ''",
        "decision = 'boot-77'",
        "revision = 2",
        "origin = 'x'",
        "details = CAST('{\"a\":1}' AS BLOB)",
        "details = x'ff'",
        "reason = CAST(x'ff' AS TEXT)",
        "hash = 'f'",
        "previous = 'f'",
    ],
)
async def test_a_changed_field_is_found_in_its_row(path: str, change: str) -> None:
    tamper(path, f"UPDATE audit SET {change} WHERE seq = 4")  # noqa: S608 - that is the point
    verdict = await verify(path)
    assert (verdict.ok, verdict.first_bad, verdict.rows) == (False, 4, 3)
    assert "row 4" in verdict.problem


async def test_a_row_taken_out_of_the_middle_is_missed(path: str) -> None:
    tamper(path, "DELETE FROM audit WHERE seq = 4")
    verdict = await verify(path)
    assert (verdict.first_bad, verdict.problem) == (4, "row 4 is missing")


async def test_the_oldest_rows_are_missed_when_no_rotation_took_them(path: str) -> None:
    tamper(path, "DELETE FROM audit WHERE seq <= 4")
    verdict = await verify(path)
    assert (verdict.first_bad, verdict.problem) == (1, "row 1 is missing")


async def test_swapped_rows_are_found(path: str) -> None:
    tamper(
        path,
        "UPDATE audit SET seq = 99 WHERE seq = 4",
        "UPDATE audit SET seq = 4 WHERE seq = 5",
        "UPDATE audit SET seq = 5 WHERE seq = 99",
    )
    assert (await verify(path)).first_bad == 4


async def test_a_row_with_a_hash_made_anew_is_found_by_the_row_behind_it(path: str) -> None:
    async with SqliteStore(path) as store:
        rows = {row.seq: row for row in (await store.audit_query()).items}
        async with SqliteStore(f"{path}.forged") as forger:
            for seq in (1, 2, 3):
                await forger.audit_append(rows[seq].entry)
            forged = await forger.audit_append(audit_entry(3, outcome="allowed"))
    change = f"outcome = 'allowed', hash = '{forged.hash}'"
    tamper(path, f"UPDATE audit SET {change} WHERE seq = 4")  # noqa: S608 - that is the point
    verdict = await verify(path)
    assert (verdict.first_bad, verdict.rows) == (5, 4)


async def test_a_cut_off_tail_is_found_by_a_head_that_was_noted_outside(path: str) -> None:
    head = (await verify(path)).head
    tamper(path, "DELETE FROM audit WHERE seq > 7")
    assert (await verify(path)).ok
    verdict = await verify(path, expected_head=head)
    assert (verdict.ok, verdict.rows, verdict.first_bad) == (False, 7, 8)


async def test_a_tail_cut_off_under_a_running_daemon_is_found(path: str) -> None:
    async with SqliteStore(path) as store:
        await store.audit_append(audit_entry(10))
        tamper(path, "DELETE FROM audit WHERE seq > 7")
        verdict = await store.audit_verify()
    assert (verdict.first_bad, verdict.problem) == (8, "row 8 is missing")


async def test_a_moved_anchor_does_not_hide_deleted_rows(path: str) -> None:
    tamper(path, "UPDATE audit_anchor SET seq = 4", "DELETE FROM audit WHERE seq <= 4")
    assert (await verify(path)).first_bad == 5


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET reason = '' WHERE seq = 4",
        "DELETE FROM audit WHERE seq = 10",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit SELECT seq, at, 'x', event, outcome, reason, decision, "
        "revision, origin, details, previous, hash FROM audit WHERE seq = 4",
        "UPDATE audit_anchor SET seq = 4",
        "UPDATE audit_anchor SET seq = 99, hash = NULL",
        "DELETE FROM audit_anchor",
    ],
)
async def test_no_mistake_of_ours_can_change_the_log(path: str, statement: str) -> None:
    async with SqliteStore(path) as store:
        with pytest.raises(StoreError):
            await store.database.write(lambda connection: connection.execute(statement).fetchall())
        verdict = await store.audit_verify()
    assert (verdict.ok, verdict.rows) == (True, 10)


async def test_rows_that_rotation_took_are_not_shown_again_when_somebody_puts_them_back(
    path: str,
) -> None:
    async with SqliteStore(path) as store:
        await store.audit_rotate(2, lambda rows: None)
        tamper(
            path,
            "INSERT INTO audit SELECT 3, at, 'forged', event, outcome, reason, decision, "
            "revision, origin, details, previous, hash FROM audit WHERE seq = 9",
        )
        assert [row.seq for row in (await store.audit_query()).items] == [10, 9]
        assert (await store.audit_verify()).ok


async def test_a_broken_log_is_not_rotated_because_that_would_hide_it(path: str) -> None:
    tamper(path, "UPDATE audit SET outcome = 'allowed' WHERE seq = 4")
    archived: list[Sequence[AuditRow]] = []
    async with SqliteStore(path) as store:
        with pytest.raises(ConflictError) as caught:
            await store.audit_rotate(2, archived.append)
        assert caught.value.details["first_bad"] == 4
        assert len((await store.audit_query()).items) == 10
    assert archived == []


async def test_a_long_log_is_walked_rotated_and_searched_in_parts(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.kernel.audit.chain.CHUNK_ROWS", 3)
    monkeypatch.setattr("remit.kernel.audit.store.CHUNK_ROWS", 3)
    monkeypatch.setattr("remit.kernel.audit.store.WINDOW_ROWS", 2)
    parts: list[Sequence[AuditRow]] = []
    async with SqliteStore(path) as store:
        assert (await store.audit_verify()).rows == 10
        assert (await store.audit_query(decision="boot-0")).items[0].seq == 1
        assert [row.seq for row in (await store.audit_query(limit=5)).items] == [10, 9, 8, 7, 6]
        assert await store.audit_rotate(2, parts.append) == 8
        assert [len(part) for part in parts] == [3, 3, 2]
        assert (await store.audit_verify()).rows == 2


async def test_an_archive_that_fails_on_a_later_part_deletes_nothing(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.kernel.audit.chain.CHUNK_ROWS", 3)
    monkeypatch.setattr("remit.kernel.audit.store.CHUNK_ROWS", 3)

    def fail_later(rows: Sequence[AuditRow]) -> None:
        if rows[0].seq > 1:
            raise OSError("no space left")

    async with SqliteStore(path) as store:
        with pytest.raises(OSError, match="no space left"):
            await store.audit_rotate(0, fail_later)
        assert (await store.audit_verify()).rows == 10


async def test_the_chain_goes_on_after_a_restart_and_after_a_rotation(path: str) -> None:
    async with SqliteStore(path) as store:
        await store.audit_rotate(0, lambda rows: None)
    async with SqliteStore(path) as store:
        row = await store.audit_append(audit_entry(10))
        assert row.seq == 11
        assert (await store.audit_verify()).ok


@pytest.mark.parametrize("failure", [ZeroDivisionError, SystemExit], ids=["write", "batch"])
async def test_what_is_rolled_back_between_two_rows_does_not_break_the_chain(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    async with SqliteStore(str(tmp_path / "remit.db")) as store:
        gate, entry = Gate(), audit_entry(0)

        def append_and_fail(connection: sqlite3.Connection) -> None:
            store._append(connection, entry, check_entry(entry))
            raise failure

        async def fail() -> None:
            with pytest.raises((failure, StoreError)):
                await store.database.write(append_and_fail)

        async def append(number: int) -> None:
            # SystemExit takes its whole batch along, and everybody in it is told so.
            with pytest.raises(StoreError) if failure is SystemExit else anyio.CancelScope():
                await store.audit_append(audit_entry(number))

        with anyio.fail_after(10):
            first = await store.audit_append(entry)
            async with anyio.create_task_group() as group:
                group.start_soon(store.database.write, gate)
                await gate.entered()
                group.start_soon(append, 1)
                group.start_soon(fail)
                group.start_soon(append, 2)
                await let_all_start()
                gate.open()
            last = await store.audit_append(audit_entry(3))
        verdict = await store.audit_verify(expected_head=first.hash)
        kept = 4 if failure is ZeroDivisionError else 2
        assert (verdict.ok, verdict.rows, last.seq) == (True, kept, kept)


async def test_whoever_looks_at_a_database_writes_one_chain(tmp_path: Path) -> None:
    async with Database(str(tmp_path / "remit.db")) as database:
        looks = [AuditRows(database), AuditRows(database)]
        for number in range(6):
            row = await looks[number % 2].audit_append(audit_entry(number))
            assert row.seq == number + 1
        assert (await AuditRows(database).audit_verify()).ok
