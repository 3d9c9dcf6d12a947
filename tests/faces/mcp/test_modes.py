"""How much of what an agent may use stands in its list: all, a few, or what this turn needs."""

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.faces.mcp.world import ERAS, World, served

MANY = "capabilities: {state_write: true, spawn_agents: true, agent_messaging: true}\n"
NAME = "name: modest\n"
METAS = {"discover_capabilities", "call_capability"}


async def modest(world: World, text: str) -> dict[str, str]:
    """An agent whose profile says how much is listed."""
    await world.edit("modest", NAME + MANY + text)
    return await world.add("ann", "modest")


async def names(client: Any) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("era", ERAS)
async def test_a_discovering_host_lists_two_tools_and_the_pinned_ones(era: str) -> None:
    async with served() as world:
        ann = await modest(world, "exposure: discovered\npinned: [state:get]\n")
        async with world.client(ann, era) as client:
            assert await names(client) == METAS | {"state_get"}


@pytest.mark.parametrize("era", ERAS)
async def test_what_was_found_can_be_called_by_name_or_by_event(era: str) -> None:
    async with served() as world:
        ann = await modest(world, "exposure: discovered\n")
        async with world.client(ann, era) as client:
            found = await client.call_tool("discover_capabilities", {"query": "store a value"})
            assert "state_set" in found.content[0].text  # type: ignore[union-attr]
            for name, value in (("state_set", 1), ("state:set", 2)):
                asked = {"name": name, "arguments": {"key": "a", "value": value}}
                done = await client.call_tool("call_capability", asked)
                assert not done.is_error
            direct = await client.call_tool("state_get", {"key": "a"})
        assert direct.structured_content is not None
        assert direct.structured_content["value"] == 2


@pytest.mark.parametrize("era", ERAS)
async def test_the_tool_that_calls_others_opens_no_further_door(era: str) -> None:
    async with served() as world:
        ann = await modest(world, "exposure: discovered\ndisallowed_tools: [state:set]\n")
        async with world.client(ann, era) as client:
            for name in ("state_set", "state:set", "key:add", "no:such", "call_capability"):
                with pytest.raises(MCPError, match="Unknown tool"):
                    await client.call_tool("call_capability", {"name": name, "arguments": {}})
            for wrong in ({}, {"name": 1}, {"name": "state_get", "arguments": []}):
                told = await client.call_tool("call_capability", wrong)
                assert told.is_error
                assert "call_capability wants" in told.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_of_turns_lists_what_the_last_question_found(era: str) -> None:
    async with served() as world:
        ann = await modest(world, "exposure: turn\n")
        async with world.listening(ann, era) as (client, told):
            assert await names(client) == {"discover_capabilities"}
            await client.call_tool("discover_capabilities", {"query": "store a value for later"})
            await told.wait()
            listed = await names(client)
            assert "state_set" in listed
            assert len(listed) < 12
            question = {"query": "create a helper agent", "kind": "tool"}
            await client.call_tool("discover_capabilities", question)
            await told.wait()
            assert "agent_spawn" in await names(client)


@pytest.mark.parametrize("era", ERAS)
async def test_another_mode_is_told_like_any_change_of_the_list(era: str) -> None:
    async with served() as world:
        ann = await modest(world, "")
        async with world.listening(ann, era) as (client, told):
            assert "state_get" in await names(client)
            await world.edit("modest", NAME + MANY + "exposure: discovered\n")
            await told.wait()
            assert await names(client) == METAS


async def test_without_the_right_to_search_everything_is_listed() -> None:
    async with served() as world:
        text = "exposure: discovered\ndisallowed_tools: [discovery:discover]\n"
        async with world.client(await modest(world, text), ERAS[1]) as client:
            listed = await names(client)
        assert "state_set" in listed
        assert not listed & METAS


async def test_a_search_shows_only_what_the_agent_may_use() -> None:
    async with served() as world:
        ann = await modest(world, "exposure: turn\ndisallowed_tools: ['state:*']\n")
        async with world.client(ann, ERAS[1]) as client:
            asked = {"query": "store a value for later"}
            found = await client.call_tool("discover_capabilities", asked)
            assert "state_set" not in found.content[0].text  # type: ignore[union-attr]
            assert not {name for name in await names(client) if name.startswith("state_")}


async def test_a_wrong_search_is_told_to_the_model() -> None:
    async with served() as world:
        async with world.client(await modest(world, "exposure: turn\n"), ERAS[1]) as client:
            result = await client.call_tool("discover_capabilities", {"kind": "spoon"})
        assert result.is_error
        assert "[invalid_data]" in result.content[0].text  # type: ignore[union-attr]
