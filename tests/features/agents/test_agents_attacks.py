"""What an agent might try in order to get more than it was given."""

from collections.abc import Sequence

import anyio
import pytest
from tests.family import Family, public_key

from remit.errors import RemitError, StoreError
from remit.kernel.authority.fleet import Fleet
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.dispatch.context import Context
from remit.kernel.store.records import AgentRecord
from remit.model.principal import Agent, AgentSpec


@pytest.fixture
async def family() -> Family:
    made = Family()
    await made.spawn("operator", "boss", "boss")
    return made


async def test_a_running_handler_of_an_agent_that_was_ended_cannot_call_on(family: Family) -> None:
    await family.spawn("boss", "kid", "writer")
    context = _context(family, "kid")
    await context.call("state:set", {"key": "a", "value": 1})
    await family.ask("boss", "agent:terminate", {"agent_id": "kid"})
    with pytest.raises(RemitError) as caught:
        await context.call("state:set", {"key": "a", "value": 2})
    assert caught.value.code == "denied"


async def test_nor_does_it_get_the_rights_of_a_later_agent_of_its_name(family: Family) -> None:
    await family.spawn("boss", "kid", "helper")
    old = _context(family, "kid")
    await family.ask("boss", "agent:terminate", {"agent_id": "kid"})
    await family.spawn("boss", "kid", "writer")
    with pytest.raises(RemitError) as caught:
        await old.call("state:set", {"key": "a", "value": 1})
    assert caught.value.details["reason"] == "revoked"
    assert family.authority.grant(old.principal).events == frozenset()
    await _context(family, "kid").call("state:set", {"key": "a", "value": 1})


async def test_an_updated_agent_is_still_the_same(family: Family) -> None:
    await family.spawn("boss", "kid", "helper")
    context = _context(family, "kid")
    await family.ask("boss", "agent:update", {"agent_id": "kid", "profile": "writer"})
    await context.call("state:set", {"key": "a", "value": 1})


async def test_a_parent_that_is_ended_while_it_spawns_leaves_no_child(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    store = family.store
    add = store.agent_add

    async def ended_meanwhile(record: AgentRecord) -> AgentRecord:
        await family.ask("operator", "agent:terminate", {"agent_id": "lead"})
        return await add(record)

    store.agent_add = ended_meanwhile  # type: ignore[method-assign]
    code, _ = await family.refused("lead", "agent:spawn", {"agent_id": "kid"})
    assert code == "unknown_agent"
    assert [record.id for record in await store.agent_list()] == ["boss"]
    assert family.authority.fleet.names() == ["boss"]


async def test_a_spawn_that_cannot_be_kept_leaves_nobody(family: Family) -> None:
    async def full(record: AgentRecord) -> AgentRecord:
        raise StoreError(f"no room for {record.id}")

    add = family.store.agent_add
    family.store.agent_add = full  # type: ignore[method-assign]
    key = public_key()
    data = {"agent_id": "kid", "public_key": key}
    assert (await family.refused("boss", "agent:spawn", data))[0] == "store_unavailable"
    assert (family.keyring.name_of_key(key), family.keyring.arriving("boss")) == (None, 0)
    family.store.agent_add = add  # type: ignore[method-assign]
    await family.ask("boss", "agent:spawn", data)


async def test_an_end_that_cannot_be_kept_shuts_out_all_the_same_and_can_be_repeated(
    family: Family,
) -> None:
    await family.spawn("boss", "kid", "helper")

    async def full(agents: Sequence[str]) -> int:
        raise StoreError(f"no room to forget {agents}")

    remove = family.store.agent_remove
    family.store.agent_remove = full  # type: ignore[method-assign]
    end = {"agent_id": "kid"}
    assert (await family.refused("operator", "agent:terminate", end))[0] == "store_unavailable"
    assert not await family.allowed("kid", "state:get")
    assert (await family.refused("operator", "agent:spawn", end))[0] == "conflict"
    other = (await family.ask("boss", "agent:spawn", end))["agent_id"]
    assert other.startswith("kid-")
    family.store.agent_remove = remove  # type: ignore[method-assign]
    await family.ask("operator", "agent:terminate", end)
    left = [record.id for record in await family.store.agent_list()]
    assert left == ["boss", other]
    await family.spawn("boss", "kid", "helper")


async def test_ending_oneself_is_written_though_the_call_is_cancelled_by_it(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    with anyio.CancelScope() as scope:
        family.keyring.on_revoke = lambda _name: scope.cancel()
        await family.answer("lead", "agent:terminate", {"agent_id": "lead"})
    assert [record.id for record in await family.store.agent_list()] == ["boss"]


async def test_agents_keys_and_positions_survive_a_restart(family: Family) -> None:
    await family.client("carl", "lead")
    key = public_key()
    await family.spawn("carl", "kid", "writer", public_key=key, disallowed_tools=["state:set"])
    again = Family(store=family.store)
    await again.keyring.load()
    before = await family.ask("operator", "agent:list")
    assert await again.ask("operator", "agent:list") == before
    assert again.keyring.name_of_key(key) == "kid"
    for name in ("boss", "carl", "kid"):
        events = [one.authority.grant(one.principal(name)).events for one in (family, again)]
        assert events[0] == events[1]


async def test_an_orphan_is_not_adopted_by_a_later_principal_of_its_parents_name(
    family: Family,
) -> None:
    store = family.store
    await family.spawn("boss", "lead", "lead")
    await family.spawn("lead", "kid")
    await store.agent_remove(["lead"])  # as if the daemon had died in the middle
    await family.store.agent_add(
        AgentRecord(
            id="lead",
            parent=None,
            position=0,
            profile="boss",
            public_key=public_key(),
            token_hash="",
            created_at=0.0,
            body=next(r for r in await store.agent_list() if r.id == "boss").body,
        )
    )
    fleet = Fleet()
    await KeyRing("operator-key", fleet, store).load()
    assert sorted(fleet.names()) == ["boss", "lead"]
    assert "kid" not in {record.id for record in await store.agent_list()}


def test_an_agent_without_its_parent_holds_nothing() -> None:
    family = Family()
    spec = AgentSpec(profile="boss")
    family.authority.fleet.add(Agent(id="orphan", parent="nobody", spec=spec))
    assert family.authority.grant(family.principal("orphan")).events == frozenset()


def _context(family: Family, name: str) -> Context:
    principal = family.principal(name)
    return Context(
        principal,
        family.authority.grant(principal),
        family.authority.catalogue,
        family.kernel,
        family.dispatcher,
    )
