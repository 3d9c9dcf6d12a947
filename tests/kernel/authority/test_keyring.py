"""Who holds which key: living keys open the door, and those that were taken away never again."""

import math
from collections.abc import Awaitable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.stores import TemporaryStore

from remit.errors import ConflictError, NotFoundError, StoreError, UnknownAgentError
from remit.kernel.authority.fleet import Fleet
from remit.kernel.authority.keyring import KeyRing, token_hash
from remit.model.principal import OPERATOR_ID, Agent, AgentSpec, Principal


def key(number: int) -> str:
    return f"{number:040d}"


class Installation:
    """A key ring over a store, which can be opened again as after a restart."""

    def __init__(self) -> None:
        self.store = TemporaryStore()
        self.rows = self.store
        self.evicted: list[str] = []
        self.ring = self._new()

    def _new(self) -> KeyRing:
        ring = KeyRing("operator-key", Fleet(), self.rows)
        ring.on_revoke = self.evicted.append
        return ring

    async def restart(self) -> None:
        self.ring = self._new()
        await self.ring.load()

    def agent(self, name: str) -> Agent:
        found = self.ring._fleet.get(name)
        assert found is not None
        return found

    async def add(self, name: str, number: int) -> None:
        await self.ring.add(name, key(number), "p")

    async def spawn(self, name: str, number: int, parent: str | None = None) -> None:
        parent_key = self.ring.key_of(parent) if parent else None
        spec = AgentSpec(profile="p", parent_key=parent_key or "")
        await self.ring.spawn(Agent(id=name, parent=parent, spec=spec, public_key=key(number)))


@pytest.fixture
def site() -> Installation:
    return Installation()


def test_the_operator_is_there_before_anybody_else(site: Installation) -> None:
    assert site.ring.name_of_key("operator-key") == OPERATOR_ID
    assert site.ring.key_of(OPERATOR_ID) == "operator-key"
    assert not site.ring.is_free(OPERATOR_ID)
    assert not site.ring.is_free("daemon")


async def test_a_key_counts_from_its_registration_to_its_end_and_over_restarts(
    site: Installation,
) -> None:
    assert site.ring.name_of_key(key(1)) is None
    await site.add("ann", 1)
    for _ in range(2):
        assert site.ring.name_of_key(key(1)) == "ann"
        assert [one.name for one in site.ring.living()] == ["ann"]
        await site.restart()
    await site.ring.revoke("ann")
    assert site.evicted == ["ann"]
    for _ in range(2):
        assert site.ring.name_of_key(key(1)) is None
        assert site.ring.principal("ann") is None
        assert site.ring.absence("ann") == "revoked"
        await site.restart()


async def test_neither_a_name_nor_a_key_is_given_twice(site: Installation) -> None:
    await site.add("ann", 1)
    await site.spawn("bob", 2)
    for name, number in [("ann", 3), ("bob", 3), ("eve", 1), ("eve", 2), ("operator", 3)]:
        with pytest.raises(ConflictError):
            await site.add(name, number)
        with pytest.raises(ConflictError):
            await site.spawn(name, number)
    assert site.ring.name_of_key(key(3)) is None
    assert site.ring.principal("eve") is None


async def test_two_that_come_at_once_under_one_name_are_not_both_let_in(
    site: Installation,
) -> None:
    outcomes: list[str] = []

    async def come(number: int) -> None:
        try:
            await site.add("ann", number)
            outcomes.append("in")
        except ConflictError:
            outcomes.append("out")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(come, 1)
        tasks.start_soon(come, 2)
    assert sorted(outcomes) == ["in", "out"]
    assert [site.ring.name_of_key(key(n)) for n in (1, 2)].count("ann") == 1


async def test_a_registration_that_fails_leaves_name_and_key_free(site: Installation) -> None:
    await site.add("eve", 9)
    site.store.database.refuses = True
    with pytest.raises(StoreError):
        await site.add("ann", 1)
    with pytest.raises(StoreError):
        await site.spawn("ann", 1)
    site.store.database.refuses = False
    assert site.ring.principal("ann") is None
    assert site.ring.is_free("ann")
    await site.add("ann", 1)
    assert site.ring.name_of_key(key(1)) == "ann"


async def test_who_is_revoked_takes_all_below_along_at_once_and_after_a_restart(
    site: Installation,
) -> None:
    await site.add("ann", 1)
    await site.spawn("kid", 2, "ann")
    await site.spawn("grandkid", 3, "kid")
    await site.spawn("other", 4)
    await site.ring.revoke("ann")
    assert sorted(site.evicted) == ["ann", "grandkid", "kid"]
    for _ in range(2):
        assert [site.ring.name_of_key(key(n)) for n in (1, 2, 3, 4)] == [None, None, None, "other"]
        await site.restart()


async def test_a_store_that_fails_does_not_keep_anybody_inside(site: Installation) -> None:
    await site.add("ann", 1)
    await site.spawn("kid", 2, "ann")
    site.store.database.refuses = True
    with pytest.raises(StoreError):
        await site.ring.revoke("ann")
    assert site.ring.name_of_key(key(1)) is None
    assert site.ring.name_of_key(key(2)) is None
    assert site.ring.unrevoked == {"ann"}
    assert not site.ring.is_free("ann")
    assert not site.ring.is_free("kid")
    site.store.database.refuses = False
    await site.ring.revoke("ann")
    assert site.ring.unrevoked == set()
    await site.restart()
    assert site.ring.principal("ann") is None
    assert site.ring.principal("kid") is None


async def test_an_end_that_was_not_written_is_written_with_the_next_one(
    site: Installation,
) -> None:
    await site.spawn("one", 1)
    await site.spawn("two", 2)
    site.store.database.refuses = True
    with pytest.raises(StoreError):
        await site.ring.end("one")
    assert site.ring.is_unwritten("one")
    site.store.database.refuses = False
    assert await site.ring.end("two") == ["two"]
    assert not site.ring.is_unwritten("one")
    assert await site.rows.agent_list() == ()


async def test_a_child_whose_parent_ended_meanwhile_is_not_let_in(site: Installation) -> None:
    await site.spawn("boss", 1)
    added = site.rows.agent_add

    async def slow(record: Any) -> Any:
        kept = await added(record)
        site.ring.dismiss(["boss"])
        return kept

    site.rows.agent_add = slow  # type: ignore[method-assign]
    with pytest.raises(UnknownAgentError):
        await site.spawn("kid", 2, "boss")
    assert site.ring.principal("kid") is None
    assert [one.id for one in await site.rows.agent_list()] == ["boss"]


async def test_orphans_of_a_store_are_not_let_in_and_are_forgotten(site: Installation) -> None:
    await site.spawn("boss", 1)
    await site.spawn("kid", 2, "boss")
    await site.rows.agent_remove(["boss"])
    await site.restart()
    assert site.ring.name_of_key(key(2)) is None
    assert await site.rows.agent_list() == ()


async def test_a_later_principal_of_a_name_is_not_the_one_before(site: Installation) -> None:
    await site.spawn("ann", 1)
    before = site.ring.principal("ann")
    assert before is not None
    await site.ring.end("ann")
    await site.spawn("ann", 2)
    after = site.ring.principal("ann")
    assert after is not None
    assert site.ring.lives(after)
    assert not site.ring.lives(before)
    assert site.ring.absence("ann", serial=before.serial) == "revoked"
    assert site.ring.absence("ann", serial=after.serial) is None
    assert site.ring.absence("nobody") == "unknown_agent"


async def test_children_count_from_the_moment_they_are_on_their_way(site: Installation) -> None:
    await site.spawn("boss", 1)
    seen: list[int] = []
    added = site.rows.agent_add

    async def watched(record: Any) -> Any:
        seen.append(site.ring.arriving("boss"))
        return await added(record)

    site.rows.agent_add = watched  # type: ignore[method-assign]
    await site.spawn("kid", 2, "boss")
    assert seen == [1]
    assert site.ring.arriving("boss") == 0


@pytest.mark.parametrize("name", ["nobody", "operator", "spawned"])
async def test_only_clients_are_revoked(site: Installation, name: str) -> None:
    await site.spawn("spawned", 1)
    with pytest.raises(NotFoundError):
        await site.ring.revoke(name)
    assert site.ring.principal("spawned") == Principal("spawned", "agent", "p", serial=1)


async def test_a_change_of_an_agent_is_kept_and_in_force(site: Installation) -> None:
    await site.spawn("ann", 1)
    present = site.agent("ann")
    await site.ring.update(replace(present, spec=replace(present.spec, profile="other")))
    for _ in range(2):
        assert site.agent("ann").spec.profile == "other"
        await site.restart()


async def test_a_change_of_an_agent_that_ended_does_not_reach_its_successor(
    site: Installation,
) -> None:
    await site.spawn("ann", 1)
    before = site.agent("ann")
    await site.ring.end("ann")
    changed = replace(before, spec=replace(before.spec, profile="other"))
    with pytest.raises(UnknownAgentError):
        await site.ring.update(changed)
    await site.spawn("ann", 2)
    with pytest.raises(UnknownAgentError):
        await site.ring.update(changed)
    assert site.agent("ann").spec.profile == "p"


async def test_the_token_of_an_agent_ends_with_it(site: Installation) -> None:
    token = "a token"  # noqa: S105
    found = Agent(id="ann", public_key=key(1), token_hash=token_hash(token))
    await site.ring.spawn(found)
    bearer = site.ring.bearer(token, "http")
    assert bearer is not None
    assert (bearer.principal.id, site.ring.still(bearer)) == ("ann", True)
    assert site.ring.seconds_left(bearer) == math.inf
    assert site.ring.bearer("another", "http") is None
    await site.ring.end("ann")
    assert site.ring.bearer(token, "http") is None
    assert not site.ring.still(bearer)


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "spawn", "end", "restart"]), st.integers(0, 4)), max_size=20
)


async def is_done(coming: Awaitable[Any]) -> bool:
    """Tell whether it was done, and not refused."""
    try:
        await coming
    except ConflictError:
        return False
    return True


@given(steps=STEPS)
async def test_whatever_happens_a_key_opens_the_door_of_its_living_holder_only(
    steps: list[tuple[str, int]],
) -> None:
    site, living, used = Installation(), dict[str, int](), dict[int, str]()
    for number, (what, who) in enumerate(steps):
        name = f"n{who}"
        if what == "restart":
            await site.restart()
        elif what == "end" and name in living:
            end = site.ring.revoke if site.ring.is_client(name) else site.ring.end
            await end(name)
            del living[name]
        elif what in {"add", "spawn"}:
            coming = site.add(name, number) if what == "add" else site.spawn(name, number)
            assert await is_done(coming) == (name not in living)
            if living.setdefault(name, number) == number:
                used[number] = name
        for one, holder in used.items():
            expected = holder if living.get(holder) == one else None
            assert site.ring.name_of_key(key(one)) == expected
