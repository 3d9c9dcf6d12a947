"""What a store holds that decides, read beside the daemon that writes it."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.rows import NOW, agent, make_store, public_key, review

from remit.app.store import Store
from remit.errors import StoreError
from remit.kernel.authority.standing import LAST_GOOD
from remit.kernel.store.database import Database
from remit.kernel.store.records import SessionRecord
from remit.kernel.store.snapshot import Snapshot, read_snapshot


async def fill(store: Store) -> None:
    await store.key_add("ann", public_key(1), "worker")
    await store.key_add("gone", public_key(2), "worker")
    await store.key_revoke("gone")
    await store.agent_add(agent("kid", 3))
    await store.session_put(SessionRecord("ann", "s", b"body"))
    await store.review_add(review("cap-1", kind="capability", subject="worker"))
    await store.review_add(review("call-1"))
    await store.capability_put("notes", b"\x00body")
    await store.name_add("ann", {"a:b": "a_b"}, limit=10)
    await store.blob_put(LAST_GOOD, b"files")
    await store.blob_put("another", b"not these")


def test_a_store_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_snapshot(tmp_path / "remit.db", LAST_GOOD) == Snapshot()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_open", [True, False])
async def test_it_holds_what_the_store_says_while_it_is_written_and_after(
    tmp_path: Path, *, is_open: bool
) -> None:
    path = tmp_path / "remit.db"
    async with make_store(str(tmp_path)) as store:
        await fill(store)
        expected = (await store.key_list(), await store.agent_list(), await store.session_list())
        during = read_snapshot(path, LAST_GOOD)
    found = during if is_open else read_snapshot(path, LAST_GOOD)
    assert (found.keys, found.agents, found.sessions) == expected
    assert [one.name for one in found.keys] == ["ann"]
    assert [one.id for one in found.reviews] == ["cap-1"]
    assert found.reviews[0].requested_at == NOW
    assert found.made == (b"\x00body",)
    assert found.names == (("ann", "a:b", "a_b"),)
    assert found.last_good == b"files"


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir()}


async def test_reading_leaves_no_trace_and_needs_no_right_to_write(tmp_path: Path) -> None:
    async with make_store(str(tmp_path)) as store:
        await fill(store)
    before = contents(tmp_path)
    lock(tmp_path, 0o500)
    try:
        assert read_snapshot(tmp_path / "remit.db", LAST_GOOD).last_good == b"files"
        assert contents(tmp_path) == before
    finally:
        lock(tmp_path, 0o700)


def lock(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    (folder / "remit.db").chmod(mode & 0o600)


async def test_a_store_of_an_older_version_holds_what_it_has(tmp_path: Path) -> None:
    async with make_store(str(tmp_path)) as store:
        await fill(store)
        await store.database.write(lambda connection: connection.execute("DROP TABLE tool_name"))
        await store.database.write(lambda connection: connection.execute("DROP TABLE session"))
        found = read_snapshot(tmp_path / "remit.db", LAST_GOOD)
    assert (found.names, found.sessions) == ((), ())
    assert [one.name for one in found.keys] == ["ann"]


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_a_store_that_cannot_be_read_is_an_error_unless_it_is_empty(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "remit.db"
    path.write_bytes(content)
    if not content:
        assert read_snapshot(path, LAST_GOOD) == Snapshot()
        return
    with pytest.raises(StoreError) as caught:
        read_snapshot(path, LAST_GOOD)
    assert str(path) in caught.value.message


async def test_everything_is_of_one_moment_however_much_is_written_meanwhile(
    tmp_path: Path,
) -> None:
    async with Database(str(tmp_path / "remit.db")) as database:
        store = Store(database)
        await store.key_add("ann", public_key(1), "worker")
        for number in range(20):
            await store.blob_put(LAST_GOOD, b"%d" % number)
            await store.agent_add(agent(f"a{number}", number + 10))
            found = read_snapshot(tmp_path / "remit.db", LAST_GOOD)
            assert found.last_good == b"%d" % number
            assert len(found.agents) == number + 1


def test_a_link_in_its_place_is_followed_like_any_database(tmp_path: Path) -> None:
    with closing((tmp_path / "x").open("w")):
        pass
    (tmp_path / "remit.db").symlink_to(tmp_path / "x")
    assert read_snapshot(tmp_path / "remit.db", LAST_GOOD) == Snapshot()
