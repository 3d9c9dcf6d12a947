"""What a store promises of the audit log."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import NOW, audit_entry

from remit.app.store import Store
from remit.errors import InvalidDataError, TooLargeError
from remit.kernel.audit.chain import GENESIS, AuditEntry, AuditRow, chain_hash, check_entry


async def append(store: Store, count: int) -> list[AuditRow]:
    return [await store.audit_append(audit_entry(number)) for number in range(count)]


def expected_hash(entry: AuditEntry, seq: int, previous: str) -> str:
    """The hash as the documentation tells it, written down a second time."""
    fields = {name: getattr(entry, name) for name in AuditEntry.__struct_fields__}
    fields |= {"details": entry.details.decode(), "seq": seq}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256((previous + text).encode()).hexdigest()


async def test_each_row_carries_its_number_and_the_hash_of_the_row_before(store: Store) -> None:
    first, second = await append(store, 2)
    assert (first.seq, first.previous) == (1, GENESIS)
    assert (second.seq, second.previous) == (2, first.hash)
    assert second.entry == audit_entry(1)


async def test_what_was_appended_is_read_back_and_verifies(store: Store) -> None:
    rows = await append(store, 5)
    page = await store.audit_query()
    assert (list(page.items), page.next) == (rows[::-1], None)
    verdict = await store.audit_verify()
    assert (verdict.ok, verdict.rows, verdict.first_bad) == (True, 5, None)
    assert verdict.head == rows[-1].hash


async def test_an_empty_log_is_whole(store: Store) -> None:
    verdict = await store.audit_verify()
    assert (verdict.ok, verdict.rows, verdict.head) == (True, 0, GENESIS)
    assert (await store.audit_query()).items == ()


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=6, max_size=6),
    at=st.floats(min_value=0, max_value=1e11),
    revision=st.integers(0, 2**40),
    details=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers()),
)
def test_the_hash_is_the_one_that_the_documentation_tells(
    texts: list[str], at: float, revision: int, details: dict[str, int]
) -> None:
    principal, event, outcome, reason, decision, origin = texts
    entry = AuditEntry(
        round(at, 3),
        principal,
        event,
        outcome,
        reason,
        decision,
        revision,
        origin,
        json.dumps(details).encode(),
    )
    found = chain_hash(check_entry(entry), 7, GENESIS)
    assert found == expected_hash(entry, 7, GENESIS)


async def test_many_writers_make_one_chain_without_forks(store: Store) -> None:
    async def write(writer: int) -> None:
        for number in range(20):
            await store.audit_append(audit_entry(number, principal=f"agent-{writer}"))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for writer in range(16):
                group.start_soon(write, writer)
    verdict = await store.audit_verify()
    assert (verdict.ok, verdict.rows) == (True, 320)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        pytest.param({"principal": "b"}, [4, 2], id="principal"),
        pytest.param({"event": "agent:spawn"}, [3], id="event"),
        pytest.param({"event": "agent:*"}, [4, 3], id="event-pattern"),
        pytest.param({"event": "*"}, [4, 3, 2, 1], id="every-event"),
        pytest.param({"event": "agent:"}, [], id="a-prefix-without-a-star-is-a-name"),
        pytest.param({"reason": "revoked"}, [2], id="reason"),
        pytest.param({"outcome": "changed"}, [3], id="outcome"),
        pytest.param({"decision": "boot-2"}, [3], id="decision"),
        pytest.param({"since": NOW + 1, "until": NOW + 2}, [3, 2], id="times-are-inclusive"),
        pytest.param({"principal": "b", "event": "agent:*"}, [4], id="all-must-hold"),
        pytest.param({"principal": None}, [4, 3, 2, 1], id="none-asks-nothing"),
        pytest.param({"principal": ""}, [], id="empty-is-a-text"),
    ],
)
async def test_a_question_finds_the_rows_it_asks_for(
    store: Store, where: dict[str, Any], found: list[int]
) -> None:
    await store.audit_append(audit_entry(0, principal="a"))
    await store.audit_append(audit_entry(1, principal="b", reason="revoked"))
    spawn = audit_entry(2, principal="a", event="agent:spawn", outcome="changed")
    await store.audit_append(spawn)
    await store.audit_append(audit_entry(3, principal="b", event="agent:spawn_many"))
    page = await store.audit_query(**where)
    assert [row.seq for row in page.items] == found


async def test_pages_walk_back_through_every_row_exactly_once(store: Store) -> None:
    await append(store, 7)
    seen: list[int] = []
    before: int | None = None
    while True:
        page = await store.audit_query(limit=3, before=before)
        seen += [row.seq for row in page.items]
        if page.next is None:
            break
        before = page.next
    assert seen == [7, 6, 5, 4, 3, 2, 1]


async def test_a_page_of_large_rows_ends_early_but_is_never_empty(store: Store) -> None:
    for number in range(4):
        await store.audit_append(audit_entry(number, reason="x" * 200_000))
    page = await store.audit_query()
    assert [row.seq for row in page.items] == [4, 3]
    assert page.next == 3


async def test_a_condition_that_does_not_exist_is_an_error_and_not_ignored(store: Store) -> None:
    with pytest.raises(TypeError, match="agnet"):
        await store.audit_query(agnet="a")  # type: ignore[call-arg]


async def test_a_head_noted_outside_proves_that_its_row_is_still_there(store: Store) -> None:
    rows = await append(store, 3)
    for row in rows:
        assert (await store.audit_verify(expected_head=row.hash)).ok
    verdict = await store.audit_verify(expected_head="f" * 64)
    assert (verdict.ok, verdict.rows, verdict.first_bad) == (False, 3, 4)
    assert "expected head" in verdict.problem


class Archive:
    """Remembers what it was handed."""

    def __init__(self) -> None:
        self.rows: list[AuditRow] = []

    def __call__(self, rows: Sequence[AuditRow]) -> None:
        self.rows += rows


async def test_rotation_archives_the_oldest_rows_and_the_rest_still_verifies(store: Store) -> None:
    rows = await append(store, 10)
    archive = Archive()
    assert await store.audit_rotate(4, archive) == 6
    assert archive.rows == rows[:6]
    assert [row.seq for row in (await store.audit_query()).items] == [10, 9, 8, 7]
    verdict = await store.audit_verify(expected_head=rows[-1].hash)
    assert (verdict.ok, verdict.rows) == (True, 4)


async def test_the_chain_goes_on_behind_a_log_that_was_rotated_empty(store: Store) -> None:
    rows = await append(store, 3)
    assert await store.audit_rotate(0, Archive()) == 3
    assert (await store.audit_verify()).head == rows[-1].hash
    following = await store.audit_append(audit_entry(3))
    assert (following.seq, following.previous) == (4, rows[-1].hash)
    assert (await store.audit_verify()).ok


@pytest.mark.parametrize("keep", [3, 100])
async def test_rotation_of_a_short_log_does_nothing(store: Store, keep: int) -> None:
    await append(store, 3)
    archive = Archive()
    assert await store.audit_rotate(keep, archive) == 0
    assert archive.rows == []
    assert len((await store.audit_query()).items) == 3


async def test_nothing_is_deleted_when_the_archive_fails(store: Store) -> None:
    def full(rows: Sequence[AuditRow]) -> None:
        raise OSError("no space left")

    await append(store, 5)
    with pytest.raises(OSError, match="no space left"):
        await store.audit_rotate(1, full)
    assert len((await store.audit_query()).items) == 5
    assert await store.audit_rotate(1, Archive()) == 4


async def test_two_rotations_at_once_archive_each_row_once(store: Store) -> None:
    rows = await append(store, 20)
    archive = Archive()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(store.audit_rotate, 5, archive)
    assert archive.rows == rows[:15]


@pytest.mark.parametrize("details", [b"", b"[]", b"{", b'"text"', b'{"a":"\xff"}'])
async def test_details_that_are_no_json_object_are_refused(store: Store, details: bytes) -> None:
    with pytest.raises(InvalidDataError):
        await store.audit_append(audit_entry(details=details))
    assert (await store.audit_query()).items == ()


@pytest.mark.parametrize(
    "changes", [{"reason": "\ud800"}, {"at": float("nan")}, {"revision": 2**63}], ids=ascii
)
async def test_an_entry_that_cannot_be_kept_is_refused(
    store: Store, changes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidDataError):
        await store.audit_append(audit_entry(**changes))


async def test_an_entry_beyond_256_kibibytes_is_refused(store: Store) -> None:
    with pytest.raises(TooLargeError):
        await store.audit_append(audit_entry(reason="x" * 256 * 1024))


@pytest.mark.parametrize("at", [5, -0.0, True], ids=str)
async def test_a_number_that_a_disk_writes_in_another_way_does_not_break_the_chain(
    store: Store, at: float
) -> None:
    await store.audit_append(audit_entry(at=at, revision=True))
    await store.audit_append(audit_entry(reason="a\0b"))
    assert (await store.audit_verify()).ok


@pytest.mark.parametrize("keep", [-1, -100])
async def test_keeping_less_than_nothing_is_refused(store: Store, keep: int) -> None:
    with pytest.raises(InvalidDataError):
        await store.audit_rotate(keep, Archive())
