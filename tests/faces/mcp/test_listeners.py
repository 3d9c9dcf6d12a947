"""Hosts hear that their list changed: those whose list did, all of them, and nobody else."""

import anyio
import pytest
from tests.faces.mcp.world import ERAS, PATIENCE, News, World, served

OBSERVER = "name: observer\ncapabilities: {state_read: true}\n"
READER = "name: reader\ncapabilities: {state_read: true}\n"
WRITER = "name: reader\ncapabilities: {state_write: true}\n"


async def quiet(world: World, *silent: News) -> None:
    """Look again for everybody: whoever had to be told has been told when this is done."""
    for _ in range(3):
        await anyio.wait_all_tasks_blocked()
    assert [one.count for one in silent] == [0] * len(silent)
    assert world.url


@pytest.mark.parametrize("era", ERAS)
async def test_an_edit_reaches_exactly_the_agents_whose_list_it_changes(era: str) -> None:
    async with served() as world:
        await world.edit("reader", READER)
        ann, bob = await world.add("ann", "reader"), await world.add("bob", "observer")
        async with (
            world.listening(ann, era) as (client, told),
            world.listening(bob, era, "bob") as (_, silent),
        ):
            await world.edit("reader", WRITER)
            await told.wait()
            assert "state_set" in {tool.name for tool in (await client.list_tools()).tools}
            await quiet(world, silent)
            assert told.count == 1


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_taken_away_is_told_and_gone_from_the_list(era: str) -> None:
    async with served() as world:
        await world.edit("reader", WRITER)
        async with world.listening(await world.add("ann", "reader"), era) as (client, told):
            await world.edit("reader", READER)
            await told.wait()
            assert "state_set" not in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("era", ERAS)
async def test_an_edit_that_changes_no_list_is_told_to_nobody(era: str) -> None:
    async with served() as world:
        await world.edit("reader", READER)
        async with world.listening(await world.add("ann", "reader"), era) as (_, silent):
            await world.edit("reader", READER + "limits: {max_calls_per_minute: 100}\n")
            await world.edit("other", "name: other\ncapabilities: {state_write: true}\n")
            await quiet(world, silent)


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_that_is_narrowed_is_told(era: str) -> None:
    async with served() as world:
        spawned = await world.desk.ask(
            "operator", "agent:spawn", {"agent_id": "kid", "profile": "base_multi_agent"}
        )
        headers = {"Authorization": f"Bearer {spawned['credentials']['token']}"}
        async with world.listening(headers, era, "kid") as (client, told):
            await world.desk.ask(
                "operator", "agent:update", {"agent_id": "kid", "disallowed_tools": ["state:*"]}
            )
            await told.wait()
            names = {tool.name for tool in (await client.list_tools()).tools}
        assert "agent_spawn" in names
        assert not {name for name in names if name.startswith("state_")}


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_that_may_not_see_notices_is_told_all_the_same(era: str) -> None:
    deaf = "disallowed_tools: [permission:changed]\n"
    async with served() as world:
        await world.edit("reader", READER + deaf)
        async with world.listening(await world.add("ann", "reader"), era) as (_, told):
            await world.edit("reader", WRITER + deaf)
            await told.wait()


async def test_two_sessions_of_one_agent_are_both_told() -> None:
    async with served() as world:
        await world.edit("reader", READER)
        ann = await world.add("ann", "reader")
        async with (
            world.listening(ann, ERAS[0]) as (_, one),
            world.listening(ann, ERAS[1]) as (_, two),
        ):
            await world.edit("reader", WRITER)
            await one.wait()
            await two.wait()


async def test_a_host_that_is_gone_costs_the_others_nothing() -> None:
    async with served() as world:
        await world.edit("reader", READER)
        ann = await world.add("ann", "reader")
        for era in ERAS:
            async with world.listening(ann, era):
                pass
        async with world.listening(ann, ERAS[1]) as (_, told):
            with anyio.fail_after(PATIENCE):
                await world.edit("reader", WRITER)
                await told.wait()
