"""What a store promises of the shared state."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from tests.rows import NOW

from remit.app.store import Store
from remit.errors import (
    ConflictError,
    InvalidDataError,
    TooLargeError,
)


async def test_what_was_set_is_read_back_with_who_and_when(store: Store) -> None:
    written = await store.state_set("plan", {"steps": [1, 2.5, None, True, "ä"]}, "agent-1")
    assert await store.state_get("plan") == written
    assert written.value == {"steps": [1, 2.5, None, True, "ä"]}
    assert (written.version, written.updated_at, written.updated_by) == (1, NOW, "agent-1")


async def test_a_key_that_was_never_set_is_none(store: Store) -> None:
    assert await store.state_get("nothing") is None


async def test_null_is_a_value_and_not_an_absence(store: Store) -> None:
    await store.state_set("empty", None, "a")
    entry = await store.state_get("empty")
    assert entry is not None
    assert entry.value is None


async def test_the_store_does_not_share_lists_with_its_callers(store: Store) -> None:
    value = [1]
    entry = await store.state_set("k", value, "a")
    value.append(2)
    entry.value.append(3)
    again = await store.state_get("k")
    assert again is not None
    assert again.value == [1]


async def test_each_change_of_a_key_counts_its_version(store: Store) -> None:
    await store.state_set("other", 0, "a")
    versions = [(await store.state_set("k", n, "a")).version for n in range(3)]
    assert versions == [1, 2, 3]


async def test_an_expected_version_lets_only_one_of_two_writers_win(store: Store) -> None:
    await store.state_set("k", "first", "a")
    await store.state_set("k", "second", "a", expect_version=1)
    with pytest.raises(ConflictError) as caught:
        await store.state_set("k", "late", "b", expect_version=1)
    assert caught.value.details["version"] == 2
    entry = await store.state_get("k")
    assert entry is not None
    assert entry.value == "second"


async def test_expecting_version_zero_creates_and_never_overwrites(store: Store) -> None:
    await store.state_set("k", 1, "a", expect_version=0)
    with pytest.raises(ConflictError):
        await store.state_set("k", 2, "a", expect_version=0)


async def test_a_key_made_again_never_repeats_a_version(store: Store) -> None:
    await store.state_set("k", "old", "a")
    await store.state_delete("k")
    await store.state_set("k", "new", "a")
    with pytest.raises(ConflictError):
        await store.state_set("k", "stale writer", "b", expect_version=1)


async def test_deleting_tells_whether_something_was_there(store: Store) -> None:
    await store.state_set("k", 1, "a")
    assert await store.state_delete("k")
    assert not await store.state_delete("k")
    assert await store.state_get("k") is None


async def test_a_delete_against_another_version_is_refused(store: Store) -> None:
    await store.state_set("k", 1, "a")
    with pytest.raises(ConflictError):
        await store.state_delete("k", expect_version=7)
    assert await store.state_get("k") is not None


async def test_a_prefix_lists_its_keys_in_order_and_no_others(store: Store) -> None:
    for key in ["b", "a/2", "a", "a/10", "a0", "a/"]:
        await store.state_set(key, key, "x")
    page = await store.state_list("a/")
    assert [entry.key for entry in page.items] == ["a/", "a/10", "a/2"]
    assert (page.total, page.next) == (3, None)


async def test_pages_walk_through_every_key_exactly_once(store: Store) -> None:
    for number in range(7):
        await store.state_set(f"k{number}", number, "x")
    seen: list[int] = []
    after: str | None = ""
    while after is not None:
        page = await store.state_list("k", limit=3, after=after)
        seen += [entry.value for entry in page.items]
        assert page.total == 7
        after = page.next
    assert seen == list(range(7))


async def test_a_full_last_page_has_no_next(store: Store) -> None:
    await store.state_set("a", 1, "x")
    await store.state_set("b", 1, "x")
    assert (await store.state_list(limit=2)).next is None


async def test_a_page_of_large_values_ends_early_but_is_never_empty(store: Store) -> None:
    for number in range(3):
        await store.state_set(f"k{number}", "x" * 1000, "x")
    page = await store.state_list(max_bytes=2100)
    assert [entry.key for entry in page.items] == ["k0", "k1"]
    page = await store.state_list(max_bytes=1, after="k1")
    assert [entry.key for entry in page.items] == ["k2"]
    assert page.next is None


@pytest.mark.parametrize("last", ["\ud7ff", "\U0010ffff", "z\U0010ffff", "\x7f"])
async def test_a_prefix_at_the_edge_of_unicode_finds_its_keys(store: Store, last: str) -> None:
    await store.state_set(last + "\U0010ffff", 1, "x")
    await store.state_set("a", 1, "x")
    assert [entry.key for entry in (await store.state_list(last)).items] == [last + "\U0010ffff"]


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800", "ä" * 513], ids=ascii)
async def test_an_impossible_key_is_refused_everywhere(store: Store, key: str) -> None:
    with pytest.raises(InvalidDataError):
        await store.state_set(key, 1, "a")
    with pytest.raises(InvalidDataError):
        await store.state_get(key)
    with pytest.raises(InvalidDataError):
        await store.state_delete(key)


@pytest.mark.parametrize("limit", [0, -1, 2**63])
async def test_an_impossible_limit_is_refused(store: Store, limit: int) -> None:
    with pytest.raises(InvalidDataError):
        await store.state_list(limit=limit)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [object(), "\ud800", {(1, 2): 3}, nested(10_000)],
    ids=["object", "text", "key", "deep"],
)
async def test_what_is_not_json_is_refused_and_changes_nothing(store: Store, value: object) -> None:
    with pytest.raises(InvalidDataError):
        await store.state_set("k", value, "a")
    assert await store.state_get("k") is None


async def test_a_value_beyond_16_mebibytes_is_refused(store: Store) -> None:
    with pytest.raises(TooLargeError):
        await store.state_set("k", "x" * (16 * 1024 * 1024), "a")
    await store.state_set("k", "x" * (16 * 1024 * 1024 - 2), "a")


async def test_text_that_is_not_unicode_is_refused_wherever_it_stands(store: Store) -> None:
    asks: list[Callable[[], Any]] = [
        lambda: store.state_set("k", 1, "\ud800"),
        lambda: store.state_list("\ud800"),
        lambda: store.state_list(after="\ud800"),
    ]
    for ask in asks:
        with pytest.raises(InvalidDataError):
            await ask()


async def test_many_writers_of_one_key_lose_no_change(store: Store) -> None:
    async def add_one() -> None:
        while True:
            entry = await store.state_get("n")
            version, value = (entry.version, entry.value) if entry else (0, 0)
            try:
                await store.state_set("n", value + 1, "a", expect_version=version)
            except ConflictError:
                await anyio.lowlevel.checkpoint()
            else:
                return

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(16):
                group.start_soon(add_one)
    entry = await store.state_get("n")
    assert entry is not None
    assert (entry.value, entry.version) == (16, 16)
