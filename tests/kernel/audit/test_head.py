"""The head outside of the database: never ahead, behind by little after a crash, and no oracle."""

import shutil
import stat
from pathlib import Path

import pytest
from tests.rows import audit_entry
from tests.stores import SqliteStore

from remit.errors import StoreError
from remit.kernel.audit.chain import AuditHead
from remit.kernel.audit.head import SIZE, Head, HeadFile, HeadTracker

SECRET = "s" * 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.head"


def opened(path: Path) -> SqliteStore:
    keeper = HeadTracker(HeadFile(path, SECRET))
    return SqliteStore(str(path.with_name("remit.db")), head=keeper)


async def head_of(store: SqliteStore) -> AuditHead:
    head = await store.audit_head()
    assert head is not None
    return head


async def append(store: SqliteStore, *seconds: float) -> None:
    for at in seconds:
        await store.audit_append(audit_entry(at=at))


async def test_the_head_is_written_before_a_row_is_answered(path: Path) -> None:
    async with opened(path) as store:
        for number in range(5):
            row = await store.audit_append(audit_entry(number))
            written = HeadFile(path, SECRET).read()
            assert written is not None
            assert (written.seq, written.hash, written.is_closed) == (row.seq, row.hash, False)
    closed = HeadFile(path, SECRET).read()
    assert closed is not None
    assert (closed.seq, closed.is_closed) == (5, True)


async def test_a_write_that_is_undone_moves_no_head(path: Path) -> None:
    async with opened(path) as store:
        await append(store, 1.0)

        def fail(connection: object) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.database.write(fail)
        assert (await head_of(store)).seq == 1
        await append(store, 2.0)
        head = await head_of(store)
        assert (head.seq, head.problem) == (2, "")


@pytest.mark.parametrize(
    ("seconds", "is_whole"),
    [((2.0, 2.5, 11.0), True), ((2.0, 13.0), False)],
    ids=["a-crash-leaves-it-behind-a-little", "an-older-one-is-told"],
)
async def test_how_far_a_head_may_be_behind(
    path: Path, seconds: tuple[float, ...], *, is_whole: bool
) -> None:
    async with opened(path) as store:
        await append(store, 1.0)
        shutil.copy(path, path.with_name("earlier"))
        await append(store, *seconds)
    shutil.copy(path.with_name("earlier"), path)
    async with opened(path) as store:
        head = await head_of(store)
        assert (not head.problem) == is_whole, head
        assert head.seq == 1 + len(seconds)


def test_a_head_is_read_with_the_key_it_was_made_with_alone(path: Path) -> None:
    HeadFile(path, SECRET).write(Head(7, "a" * 64))
    assert HeadFile(path, SECRET).read() == Head(7, "a" * 64)
    assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_size) == (0o600, SIZE)
    with pytest.raises(StoreError, match="another server key"):
        HeadFile(path, "t" * 40).read()
    data = path.read_bytes()
    for place in range(len(data.rstrip())):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(StoreError):
            HeadFile(path, SECRET).read()


def test_a_link_in_its_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    path.symlink_to(tmp_path / "elsewhere")
    for use in (HeadFile(path, SECRET).read, lambda: HeadFile(path, SECRET).write(Head())):
        with pytest.raises((StoreError, OSError)):
            use()
    assert (tmp_path / "elsewhere").read_text() == "mine"
