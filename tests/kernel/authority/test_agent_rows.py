"""What a store promises of agents."""

import pytest
from tests.rows import NOW, agent, public_key

from remit.app.store import Store
from remit.errors import ConflictError, InvalidDataError, NotFoundError
from remit.kernel.store.records import AgentRecord


async def test_agents_come_back_whole_in_the_order_of_their_positions(store: Store) -> None:
    first = await store.agent_add(agent("z", 1))
    second = await store.agent_add(agent("a", 2, parent="z"))
    assert await store.agent_list() == (first, second)
    assert second == AgentRecord(
        "a", "z", second.position, "worker", public_key(2), "hash", NOW, b"body"
    )
    assert second.position > first.position


async def test_a_position_is_never_given_twice(store: Store) -> None:
    first = await store.agent_add(agent("a", 1))
    await store.agent_remove(["a"])
    again = await store.agent_add(agent("a", 2))
    assert again.position > first.position


async def test_two_living_agents_never_share_a_name(store: Store) -> None:
    await store.agent_add(agent("a", 1))
    with pytest.raises(ConflictError):
        await store.agent_add(agent("a", 2))
    assert len(await store.agent_list()) == 1


async def test_an_agent_and_a_living_client_key_never_share_a_name(store: Store) -> None:
    await store.key_add("key", public_key(1), "p")
    await store.agent_add(agent("agent", 2))
    with pytest.raises(ConflictError):
        await store.agent_add(agent("key", 3))
    with pytest.raises(ConflictError):
        await store.key_add("agent", public_key(4), "p")
    await store.key_revoke("key")
    await store.agent_remove(["agent"])
    await store.agent_add(agent("key", 5))
    await store.key_add("agent", public_key(6), "p")


async def test_a_public_key_never_comes_back_as_somebody_else(store: Store) -> None:
    await store.agent_add(agent("gone", 1))
    await store.agent_remove(["gone"])
    await store.key_add("revoked", public_key(2), "p")
    await store.key_revoke("revoked")
    for number in (1, 2):
        with pytest.raises(ConflictError):
            await store.agent_add(agent("new", number))
        with pytest.raises(ConflictError):
            await store.key_add("new", public_key(number), "p")
    assert await store.agent_list() == ()


async def test_a_refused_agent_does_not_use_up_its_public_key(store: Store) -> None:
    await store.agent_add(agent("a", 1))
    with pytest.raises(ConflictError):
        await store.agent_add(agent("a", 2))
    await store.agent_add(agent("b", 2))


async def test_an_update_changes_profile_and_body_and_nothing_else(store: Store) -> None:
    added = await store.agent_add(agent("a"))
    updated = await store.agent_update("a", profile="reader", body=b"new")
    assert await store.agent_list() == (updated,)
    assert (updated.profile, updated.body) == ("reader", b"new")
    assert (updated.position, updated.public_key) == (added.position, added.public_key)


async def test_updating_an_agent_that_does_not_live_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError):
        await store.agent_update("nobody", profile="p", body=b"")


async def test_removing_counts_only_those_that_lived(store: Store) -> None:
    await store.agent_add(agent("a", 1))
    await store.agent_add(agent("b", 2))
    assert await store.agent_remove(["a", "b", "a", "nobody"]) == 2
    assert await store.agent_remove([]) == 0
    assert await store.agent_list() == ()


@pytest.mark.parametrize("name", ["", " a", "a\n", "x" * 129, "\ud800"], ids=ascii)
async def test_an_impossible_agent_name_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidDataError):
        await store.agent_add(agent(name))


async def test_no_agent_can_take_the_operators_name(store: Store) -> None:
    with pytest.raises(ConflictError):
        await store.agent_add(agent("operator"))


async def test_those_who_are_gone_are_remembered_and_nobody_else(store: Store) -> None:
    await store.agent_add(agent("kid", 1))
    await store.agent_add(agent("stays", 2))
    await store.key_add("carl", public_key(3), "p")
    await store.agent_remove(["kid", "never"])
    await store.key_revoke("carl")
    assert sorted(await store.ended_list()) == ["carl", "kid"]
    await store.agent_add(agent("kid", 4))
    await store.agent_remove(["kid"])
    assert sorted(await store.ended_list()) == ["carl", "kid"]
