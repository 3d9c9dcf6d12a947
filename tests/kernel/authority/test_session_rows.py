"""What a store promises of sessions."""

import pytest
from tests.rows import agent, public_key

from remit.app.store import Store
from remit.errors import InvalidDataError, TooLargeError
from remit.kernel.store.records import SessionRecord
from remit.kernel.store.rows import MAX_VALUE_BYTES


async def test_sessions_come_back_whole_by_owner_and_name(store: Store) -> None:
    kept = [SessionRecord(*one, b"body") for one in (("b", "s"), ("a", "t"), ("a", "s"))]
    for record in kept:
        await store.session_put(record)
    assert await store.session_list() == (kept[2], kept[1], kept[0])


async def test_a_session_takes_the_place_of_the_one_of_its_owner_and_name(store: Store) -> None:
    await store.session_put(SessionRecord("a", "s", b"old"))
    await store.session_put(SessionRecord("a", "s", b"new"))
    assert await store.session_list() == (SessionRecord("a", "s", b"new"),)


async def test_removing_counts_only_those_that_were_there(store: Store) -> None:
    for owner, name in (("a", "s"), ("a", "t"), ("b", "s")):
        await store.session_put(SessionRecord(owner, name, b""))
    assert await store.session_remove([("a", "s"), ("a", "s"), ("b", "t")]) == 1
    assert await store.session_remove([]) == 0
    assert [(one.owner, one.name) for one in await store.session_list()] == [("a", "t"), ("b", "s")]


async def test_the_sessions_of_an_agent_and_of_a_client_go_with_them(store: Store) -> None:
    await store.agent_add(agent("a", 1))
    await store.key_add("k", public_key(2), "p")
    for owner in ("a", "k", "operator"):
        await store.session_put(SessionRecord(owner, "s", b""))
    await store.agent_remove(["a"])
    await store.key_revoke("k")
    assert [one.owner for one in await store.session_list()] == ["operator"]


@pytest.mark.parametrize(("owner", "name"), [("", "s"), ("a", ""), ("a", "\0"), ("\ud800", "s")])
async def test_an_impossible_session_is_refused(store: Store, owner: str, name: str) -> None:
    with pytest.raises(InvalidDataError):
        await store.session_put(SessionRecord(owner, name, b""))
    with pytest.raises(InvalidDataError):
        await store.session_remove([(owner, name)])
    assert await store.session_list() == ()


async def test_a_session_beyond_what_any_store_takes_is_refused(store: Store) -> None:
    with pytest.raises(TooLargeError):
        await store.session_put(SessionRecord("a", "s", bytes(MAX_VALUE_BYTES + 1)))
