"""What a store promises of the tool names that somebody was shown."""

import pytest
from tests.rows import agent, public_key

from remit.app.store import Store
from remit.errors import ConflictError, InvalidDataError, LimitError


async def test_names_come_back_by_event_for_their_owner_alone(store: Store) -> None:
    await store.name_add("ann", {"b:c": "b_c", "a:b": "a_b"}, limit=10)
    await store.name_add("bob", {"x:y": "a_b"}, limit=10)
    assert list((await store.name_list("ann")).items()) == [("a:b", "a_b"), ("b:c", "b_c")]
    assert await store.name_list("nobody") == {}


@pytest.mark.parametrize("second", [{"a:b": "other"}, {"x:y": "a_b"}, {"x:y": "new", "x:z": "new"}])
async def test_a_name_never_changes_its_event(store: Store, second: dict[str, str]) -> None:
    await store.name_add("ann", {"a:b": "a_b"}, limit=10)
    with pytest.raises(ConflictError):
        await store.name_add("ann", {"q:q": "q_q", **second}, limit=10)
    assert await store.name_list("ann") == {"a:b": "a_b"}


async def test_the_names_of_all_together_are_bounded(store: Store) -> None:
    await store.name_add("ann", {"a:b": "a_b"}, limit=2)
    with pytest.raises(LimitError):
        await store.name_add("bob", {"a:b": "a_b", "b:c": "b_c"}, limit=2)
    assert await store.name_list("bob") == {}


@pytest.mark.parametrize(
    ("owner", "names"),
    [("", {"a:b": "x"}), ("\ud800", {"a:b": "x"}), ("ann", {"": "x"}), ("ann", {"a:b": "\ud800"})],
)
async def test_an_impossible_name_is_refused(
    store: Store, owner: str, names: dict[str, str]
) -> None:
    with pytest.raises(InvalidDataError):
        await store.name_add(owner, names, limit=10)


async def test_names_go_with_the_agent_and_a_newcomer_begins_anew(store: Store) -> None:
    await store.agent_add(agent("ann", 1))
    await store.name_add("ann", {"a:b": "a_b"}, limit=10)
    await store.agent_remove(["ann"])
    assert await store.name_list("ann") == {}
    # A list that was on its way when the agent ended may still be written.
    await store.name_add("ann", {"a:b": "old"}, limit=10)
    await store.agent_add(agent("ann", 2))
    assert await store.name_list("ann") == {}


async def test_names_go_with_the_key_and_a_newcomer_begins_anew(store: Store) -> None:
    await store.key_add("ann", public_key(1), "p")
    await store.name_add("ann", {"a:b": "a_b"}, limit=10)
    await store.key_revoke("ann")
    assert await store.name_list("ann") == {}
    await store.name_add("ann", {"a:b": "old"}, limit=10)
    await store.key_add("ann", public_key(2), "p")
    assert await store.name_list("ann") == {}
