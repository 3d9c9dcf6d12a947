"""What a store promises of capabilities that were made at run time."""

import pytest

from remit.app.store import Store
from remit.errors import InvalidDataError, TooLargeError
from remit.kernel.store.rows import MAX_VALUE_BYTES


async def test_made_capabilities_come_back_whole_by_id(store: Store) -> None:
    await store.capability_put("notes", b"\x00body")
    await store.capability_put("a-team", b"other")
    found = await store.capability_list()
    assert list(found.items()) == [("a-team", b"other"), ("notes", b"\x00body")]


async def test_one_takes_the_place_of_the_one_of_its_id(store: Store) -> None:
    await store.capability_put("notes", b"old")
    await store.capability_put("notes", b"new")
    assert await store.capability_list() == {"notes": b"new"}


async def test_removing_tells_whether_it_was_there(store: Store) -> None:
    await store.capability_put("notes", b"")
    assert [
        await store.capability_remove("notes"),
        await store.capability_remove("notes"),
    ] == [True, False]
    assert await store.capability_list() == {}


@pytest.mark.parametrize("name", ["", "\0", "\ud800"])
async def test_an_impossible_id_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidDataError):
        await store.capability_put(name, b"")
    with pytest.raises(InvalidDataError):
        await store.capability_remove(name)
    assert await store.capability_list() == {}


async def test_a_body_beyond_what_any_store_takes_is_refused(store: Store) -> None:
    with pytest.raises(TooLargeError):
        await store.capability_put("notes", bytes(MAX_VALUE_BYTES + 1))
