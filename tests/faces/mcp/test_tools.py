"""The tools of a host are what its agent may use, listed whole, in part or as this turn needs."""

from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from tests.faces.mcp.world import ERAS, PATIENCE, World, served
from tests.fakes import Desk, built_in_handlers, texts

from remit.errors import ConflictError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import Registry

OWN = """
  base:
    description: everything here
    event_patterns: ["own:*", system:discover]
    always_included: true
"""


def own_desk() -> Desk:
    """Events of a test's own, all of them for everybody."""
    registry = Registry()
    started, cancelled = anyio.Event(), anyio.Event()

    @registry.event_handler("own:steps", effect="read")
    async def steps(ctx: Context) -> dict[str, int]:
        """Work in steps."""
        for step in range(1, 4):
            ctx.report(step, 3, f"step {step}")
        return {"steps": 3}

    @registry.event_handler("own:slow", effect="read")
    async def slow() -> None:
        """Work for ever."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    @registry.event_handler("own:blocks", effect="read", content=True, title="Blocks of content")
    async def blocks() -> dict[str, Any]:
        """Answer in blocks."""
        return {
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "structured_content": {"of": 2},
        }

    @registry.event_handler("own:fails", effect="destructive", open_world=True)
    async def fails() -> None:
        """Fail."""
        raise ConflictError("it is taken", hint="choose another name")

    @registry.event_handler("own:nothing")
    async def nothing() -> None:
        """Do it, and say nothing."""

    desk = Desk(built_in_handlers() | registry.handlers(), texts(OWN, open="description: all\n"))
    desk.started, desk.cancelled = started, cancelled  # type: ignore[attr-defined]
    return desk


@pytest.mark.parametrize("era", ERAS)
async def test_each_agent_is_listed_what_it_may_use_and_nothing_else(era: str) -> None:
    async with served() as world:
        amy = await world.add("amy", "base_multi_agent")
        bob = await world.add("bob", "observer")
        for headers, profile in ((amy, "base_multi_agent"), (bob, "observer")):
            async with world.client(headers, era) as client:
                listed = await client.list_tools()
            told = await world.desk.ask(profile, "system:discover", {"format": "mcp"})
            names = {tool["name"] for tool in told["tools"]}
            assert {tool.name for tool in listed.tools} == names | {"discover_capabilities"}


async def test_a_list_is_private_and_old_at_once() -> None:
    async with served() as world:
        async with world.client(await world.add("ann", "observer"), "2026-07-28") as client:
            listed = await client.list_tools()
        assert (listed.ttl_ms, listed.cache_scope) == (0, "private")


@pytest.mark.parametrize("era", ERAS)
async def test_flags_of_the_handler_are_the_annotations_of_the_tool(era: str) -> None:
    async with served(own_desk()) as world:
        async with world.client(await world.add("ann", "open"), era) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = tools["own_fails"].annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (
            False,
            True,
            True,
        )
        assert tools["own_blocks"].title == "Blocks of content"
        assert tools["own_steps"].annotations.read_only_hint is True  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_is_the_event_and_its_answer(era: str) -> None:
    async with served() as world:
        async with world.client(await world.add("ann", "base_multi_agent"), era) as client:
            done = await client.call_tool("state_set", {"key": "a", "value": [1]})
            assert done.is_error is False
            got = await client.call_tool("state_get", {"key": "a"})
        assert got.structured_content is not None
        assert got.structured_content["value"] == [1]
        assert '"value":[1]' in got.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_not_allowed_answers_like_what_does_not_exist(era: str) -> None:
    async with served() as world:
        async with world.client(await world.add("bob", "observer"), era) as client:
            told = []
            for name in ("state_set", "state_sat", "state:set", "mcp__x__y"):
                with pytest.raises(MCPError) as refused:
                    await client.call_tool(name, {"key": "a", "value": 1})
                error = refused.value.error
                told.append((error.code, error.message.replace(name, "NAME"), error.data))
            assert len({repr(one) for one in told}) == 1
        assert await world.desk.store.state_get("a") is None


@pytest.mark.parametrize("era", ERAS)
async def test_wrong_arguments_are_told_to_the_model_with_the_repair(era: str) -> None:
    async with served() as world:
        async with world.client(await world.add("ann", "base_multi_agent"), era) as client:
            result = await client.call_tool("state_set", {"kee": 1})
        text = result.content[0].text  # type: ignore[union-attr]
        assert result.is_error
        assert "[invalid_data]" in text
        assert "'key'" in text


@pytest.mark.parametrize("era", ERAS)
async def test_a_failure_says_why_and_what_to_do(era: str) -> None:
    async with served(own_desk()) as world:
        async with world.client(await world.add("ann", "open"), era) as client:
            result = await client.call_tool("own_fails", {})
        assert result.is_error
        assert result.content[0].text == "it is taken [conflict]\nchoose another name"  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_a_limit_is_an_error_with_when_to_come_back(era: str) -> None:
    async with served() as world:
        await world.edit("short", "name: short\nlimits: {max_calls_per_minute: 2}\n")
        async with world.client(await world.add("ann", "short"), era) as client:
            await client.list_tools()
            results = [await client.call_tool("system_health", {}) for _ in range(3)]
        assert results[-1].is_error
        assert "[limit_exceeded]\ncome back in" in results[-1].content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_blocks_of_content_are_handed_on_as_they_are(era: str) -> None:
    async with served(own_desk()) as world:
        async with world.client(await world.add("ann", "open"), era) as client:
            result = await client.call_tool("own_blocks", {})
            done = await client.call_tool("own_nothing", {})
        assert [block.text for block in result.content] == ["a", "b"]  # type: ignore[union-attr]
        assert result.structured_content == {"of": 2}
        assert done.content[0].text == "done"  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_progress_arrives_before_the_result(era: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with (
        served(own_desk()) as world,
        world.client(await world.add("ann", "open"), era) as client,
    ):
        result = await client.call_tool("own_steps", {}, progress_callback=note)
    assert result.structured_content == {"steps": 3}
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_nobody_waits_for_any_more_ends(era: str) -> None:
    desk: Any = own_desk()
    async with (
        served(desk) as world,
        world.client(await world.add("ann", "open"), era) as client,
    ):
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "own_slow", {})
                await desk.started.wait()
                tasks.cancel_scope.cancel()
            await desk.cancelled.wait()


async def test_more_calls_at_once_than_allowed_are_told_to_wait() -> None:
    desk: Any = own_desk()
    async with served(desk, in_flight=1) as world:
        async with world.client(await world.add("ann", "open"), "2026-07-28") as client:
            await client.list_tools()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "own_slow", {})
                await desk.started.wait()
                result = await client.call_tool("own_nothing", {})
                tasks.cancel_scope.cancel()
        assert result.is_error
        assert "[limit_exceeded]" in result.content[0].text  # type: ignore[union-attr]


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
