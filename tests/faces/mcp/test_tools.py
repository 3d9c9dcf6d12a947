"""The tools of a host are the events of its agent, and nothing else."""

from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from tests.faces.mcp.world import ERAS, PATIENCE, served
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
        assert await world.desk.services.store.state_get("a") is None


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
