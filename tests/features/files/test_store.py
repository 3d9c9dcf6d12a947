"""What a store promises of the files of sessions."""

import pytest
from tests.rows import NOW, agent, public_key

from remit.app.store import Store
from remit.errors import ConflictError, InvalidDataError, LimitError, TooLargeError
from remit.features.files.store import FileInfo, FileLimits, StoredFile
from remit.model.grant import SessionKey

ANN = SessionKey("ann", "key-of-ann", "work")
USUAL = FileLimits()


async def put(store: Store, path: str, content: bytes = b"", *, where: SessionKey = ANN) -> bool:
    _, is_new = await store.file_put(where, path, content, limits=USUAL)
    return is_new


async def paths(store: Store, where: SessionKey = ANN, prefix: str = "/") -> list[str]:
    return [info.path for info in await store.file_list(where, prefix)]


async def test_a_file_comes_back_as_it_was_put(store: Store) -> None:
    kept = await store.file_put(ANN, "/a/b.bin", b"\x00\xff", limits=USUAL)
    info = FileInfo("/a/b.bin", 2, NOW, NOW)
    assert kept == (info, True)
    assert await store.file_get(ANN, "/a/b.bin") == StoredFile(info, b"\x00\xff")
    assert await store.file_get(ANN, "/a") is None


async def test_a_file_takes_the_place_of_the_one_of_its_path(store: Store) -> None:
    assert await put(store, "/a", b"old") is True
    assert await put(store, "/a", b"newer") is False
    assert [info.size for info in await store.file_list(ANN)] == [5]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(SessionKey("ann", "key-of-ann", "play"), id="another-session"),
        pytest.param(SessionKey("ann", "key-of-ann"), id="no-session"),
        pytest.param(SessionKey("bob", "key-of-ann", "work"), id="another-owner"),
        pytest.param(SessionKey("ann", "later-key", "work"), id="a-later-owner-of-that-name"),
    ],
)
async def test_nobody_sees_the_files_of_another_session(store: Store, other: SessionKey) -> None:
    await put(store, "/a", b"mine")
    assert await store.file_get(other, "/a") is None
    assert await store.file_list(other) == ()
    assert await store.file_page(other) == ()
    assert await store.file_remove(other, "/", recursive=True) == 0
    assert await store.file_clear(other) == 0
    assert await paths(store) == ["/a"]


async def test_files_are_listed_by_path_and_by_their_beginning(store: Store) -> None:
    for path in ("/b", "/a/x", "/a/\U0010ffff", "/a.txt", "/a0"):
        await put(store, path)
    assert await paths(store) == ["/a.txt", "/a/x", "/a/\U0010ffff", "/a0", "/b"]
    assert await paths(store, prefix="/a/") == ["/a/x", "/a/\U0010ffff"]


async def test_a_page_ends_before_its_files_outgrow_it_and_holds_at_least_one(store: Store) -> None:
    for path, size in (("/a", 5), ("/b", 1), ("/c", 1)):
        await put(store, path, bytes(size))
    pages = []
    after = ""
    while page := await store.file_page(ANN, after=after, max_bytes=2):
        pages.append([file.info.path for file in page])
        after = page[-1].info.path
    assert pages == [["/a"], ["/b", "/c"]]


async def test_a_file_is_no_directory_and_a_directory_no_file(store: Store) -> None:
    await put(store, "/a/b")
    for path in ("/a", "/a/b/c", "/a/b/c/d", "/"):
        with pytest.raises(ConflictError):
            await put(store, path)
    assert await paths(store) == ["/a/b"]


async def test_removing_takes_a_file_and_only_on_demand_what_lies_below(store: Store) -> None:
    for path in ("/a/b", "/a/c/d", "/a0", "/b"):
        await put(store, path)
    assert await store.file_remove(ANN, "/a") == 0
    assert await store.file_remove(ANN, "/a", recursive=True) == 2
    assert await store.file_remove(ANN, "/b") == 1
    assert await paths(store) == ["/a0"]
    assert await store.file_remove(ANN, "/", recursive=True) == 1
    assert await store.file_clear(ANN) == 0


async def test_clearing_takes_all_files_of_one_session(store: Store) -> None:
    other = SessionKey("ann", "key-of-ann", "play")
    await put(store, "/a")
    await put(store, "/b/c")
    await put(store, "/a", where=other)
    assert await store.file_clear(ANN) == 2
    assert (await paths(store), await paths(store, other)) == ([], ["/a"])


async def test_a_session_keeps_no_more_than_its_quota(store: Store) -> None:
    limits = FileLimits(size=6, count=2, total=10)
    await store.file_put(ANN, "/a", bytes(6), limits=limits)
    await store.file_put(ANN, "/b", bytes(4), limits=limits)
    with pytest.raises(TooLargeError):
        await store.file_put(ANN, "/b", bytes(7), limits=limits)
    with pytest.raises(LimitError, match="10 bytes"):
        await store.file_put(ANN, "/b", bytes(5), limits=limits)
    with pytest.raises(LimitError, match="2 files"):
        await store.file_put(ANN, "/c", b"", limits=limits)
    assert [info.size for info in await store.file_list(ANN)] == [6, 4]


async def test_what_was_removed_or_shortened_makes_room(store: Store) -> None:
    limits = FileLimits(size=10, count=2, total=10)
    await store.file_put(ANN, "/a", bytes(9), limits=limits)
    await store.file_put(ANN, "/a", bytes(1), limits=limits)
    await store.file_put(ANN, "/b", bytes(9), limits=limits)
    await store.file_remove(ANN, "/b")
    await store.file_put(ANN, "/c", bytes(9), limits=limits)
    assert [info.size for info in await store.file_list(ANN)] == [1, 9]


async def test_only_so_many_sessions_of_one_owner_keep_files(store: Store) -> None:
    limits = FileLimits(areas=2)
    first, second, third = (SessionKey("ann", "k", name) for name in "abc")
    await store.file_put(first, "/a", b"", limits=limits)
    await store.file_put(second, "/a", b"", limits=limits)
    with pytest.raises(LimitError, match="2 sessions"):
        await store.file_put(third, "/a", b"", limits=limits)
    await store.file_put(SessionKey("bob", "k", "a"), "/a", b"", limits=limits)
    await store.file_put(second, "/b", b"", limits=limits)
    await store.file_remove(first, "/a")
    await store.file_put(third, "/a", b"", limits=limits)


async def test_the_files_of_an_agent_and_of_a_client_go_with_them(store: Store) -> None:
    await store.agent_add(agent("a", 1))
    await store.key_add("k", public_key(2), "p")
    keys = [SessionKey(owner, "x", "s") for owner in ("a", "k", "operator")]
    for key in keys:
        await put(store, "/f", where=key)
    await store.agent_remove(["a"])
    await store.key_revoke("k")
    assert [await paths(store, key) for key in keys] == [[], [], ["/f"]]


@pytest.mark.parametrize("path", ["", "a", "/\0", "/\ud800", "/" + "a" * 1024])
async def test_an_impossible_path_is_refused(store: Store, path: str) -> None:
    for attempt in (
        store.file_put(ANN, path, b"", limits=USUAL),
        store.file_get(ANN, path),
        store.file_list(ANN, path),
        store.file_remove(ANN, path),
    ):
        with pytest.raises(InvalidDataError):
            await attempt


@pytest.mark.parametrize("key", [SessionKey(""), SessionKey("a\0"), SessionKey("a", "", "\ud800")])
async def test_an_impossible_session_is_refused(store: Store, key: SessionKey) -> None:
    with pytest.raises(InvalidDataError):
        await put(store, "/a", where=key)
    with pytest.raises(InvalidDataError):
        await store.file_clear(key)
