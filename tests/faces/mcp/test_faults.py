"""What a host is told when something is wrong with its agent, its session or an answer."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.faces.mcp.test_endpoint import HELLO, post
from tests.faces.mcp.test_listeners import READER, WRITER
from tests.faces.mcp.test_tools import OWN, own_desk
from tests.faces.mcp.world import ERAS, PATIENCE, World, served
from tests.fakes import Desk, built_in_handlers, texts

from remit.faces.mcp.listeners import STREAMS
from remit.kernel.dispatch.registry import Registry
from remit.model.descriptor import META_TOOL

BROKEN: dict[str, Any] = {"text": "\ud800", "key": {"\ud800": 1}, "pair": {(1, 2): 3}}
SLOW = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "own_slow"}}
SOON = 4.0
"""Earlier than the time-out of the handler."""
METERED = 4
LIMITED = f"""
name: limited
capabilities: {{state_write: true}}
limits: {{max_calls_per_minute: {METERED}}}
"""


def broken_desk() -> Desk:
    """Events whose answers have no form outside of Python."""
    registry = Registry()

    @registry.event_handler("own:broken", effect="read")
    async def broken(what: str) -> Any:
        """Answer what cannot be written."""
        return BROKEN[what]

    @registry.event_handler("own:blocks", effect="read", content=True)
    async def blocks(what: str) -> Any:
        """Answer blocks."""
        if what == "bytes":
            return {"content": [{"type": "image", "data": b"\xff", "mimeType": "image/png"}]}
        return {"content": [{"type": "text", "text": "\ud800"}]}

    return Desk(built_in_handlers() | registry.handlers(), texts(OWN, open="description: all\n"))


@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_that_cannot_be_written_is_a_failure_with_a_code(era: str) -> None:
    asked = [("own_broken", one) for one in BROKEN] + [("own_blocks", "text")]
    async with (
        served(broken_desk()) as world,
        world.client(await world.add("ann", "open"), era) as client,
    ):
        for tool, what in asked:
            done = await client.call_tool(tool, {"what": what})
            assert done.is_error
            assert "[internal]" in done.content[0].text  # type: ignore[union-attr]


async def test_bytes_in_content_go_out_as_the_protocol_wants_them() -> None:
    async with served(broken_desk()) as world:
        async with world.client(await world.add("ann", "open"), ERAS[1]) as client:
            done = await client.call_tool("own_blocks", {"what": "bytes"})
        assert done.content[0].data == "/w=="  # type: ignore[union-attr]


@asynccontextmanager
async def busy(world: World, headers: dict[str, str]) -> AsyncGenerator[Client]:
    """A host whose agent has as many calls under way as it may."""
    desk: Any = world.desk
    async with world.client(headers, ERAS[0]) as client, anyio.create_task_group() as tasks:
        await client.list_tools()
        tasks.start_soon(client.call_tool, "own_slow", {})
        with anyio.fail_after(PATIENCE):
            await desk.started.wait()
        yield client
        tasks.cancel_scope.cancel()


async def test_a_list_that_cannot_be_made_is_an_error_and_not_an_empty_list() -> None:
    async with (
        served(own_desk(), in_flight=1) as world,
        busy(world, await world.add("ann", "open")) as client,
    ):
        with pytest.raises(MCPError, match="limit_exceeded"):
            await client.list_tools()
        done = await client.call_tool("own_nothing", {})
        assert "[limit_exceeded]" in done.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_over_its_limit_is_told_so_and_keeps_its_tools(era: str) -> None:
    async with served() as world:
        await world.edit("limited", LIMITED)
        ann = await world.add("ann", "limited")
        async with world.client(ann, era) as client:
            for _ in range(METERED):
                assert (await client.list_tools()).tools
            with pytest.raises(MCPError, match="limit_exceeded"):
                await client.list_tools()
            done = await client.call_tool("state_get", {"key": "a"})
            assert "[limit_exceeded]" in done.content[0].text  # type: ignore[union-attr]


async def test_news_that_could_not_be_read_is_told_later() -> None:
    async with served(own_desk(), in_flight=1) as world:
        ann = await world.add("ann", "open")
        async with world.listening(ann, ERAS[1]) as (_, told), busy(world, ann):
            await world.edit("open", "name: open\ndisallowed_tools: [own:nothing]\n")
            await anyio.wait_all_tasks_blocked()
            assert told.count == 0
            world.endpoint._running.end("ann")
            await told.wait()
            assert told.count == 1


async def test_a_list_that_cannot_be_read_does_not_hide_that_another_one_changed() -> None:
    async with served() as world:
        await world.edit("limited", LIMITED)
        ann = await world.add("ann", "limited")
        async with world.listening(ann, ERAS[0]) as (client, told):
            await client.list_prompts()  # two calls; a fourth is left for the list of tools
            await world.edit("limited", LIMITED.replace("state_write", "state_read"))
            await told.wait()


@pytest.mark.parametrize("era", ERAS)
async def test_a_search_with_odd_words_is_answered_or_refused_with_the_repair(era: str) -> None:
    async with (
        served() as world,
        world.client(await world.add("ann", "base_multi_agent"), era) as client,
    ):
        found = await client.call_tool(META_TOOL, {"query": "state", "render": False})
        assert "state_set" in found.content[0].text  # type: ignore[union-attr]
        wrong = await client.call_tool(META_TOOL, {"query": None})
        assert "[invalid_data]" in wrong.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_hosts_of_one_agent_in_different_sessions_each_hear_of_their_own(era: str) -> None:
    async with served() as world:
        await world.desk.ask("operator", "session:open", {"session": "chat"})
        ann = await world.add("ann", "base_multi_agent")
        chat, other = ann | {"Remit-Session": "chat"}, ann | {"Remit-Session": "other"}
        async with (
            world.listening(ann, era) as (_, plain),
            world.listening(chat, era) as (client, told),
            world.listening(other, era) as (_, silent),
        ):
            asked = {"session": "chat", "disallowed_tools": ["state:*"]}
            await world.desk.ask("operator", "session:narrow", asked)
            await told.wait()
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "state_set" not in names
            for _ in range(3):
                await anyio.wait_all_tasks_blocked()
            assert (plain.count, told.count, silent.count) == (0, 1, 0)


@pytest.mark.parametrize("era", ERAS)
async def test_a_change_that_another_host_of_the_agent_sees_first_is_told_all_the_same(
    era: str,
) -> None:
    async with served() as world:
        await world.edit("reader", READER)
        ann = await world.add("ann", "reader")
        async with world.listening(ann, era) as (_, told), world.client(ann, ERAS[1]) as other:
            delivery = world.desk.kernel.delivery
            delivery.on_change = lambda _name: None  # it lists before we come to look
            await world.edit("reader", WRITER)
            await other.list_tools()
            await told.wait()


@pytest.mark.parametrize("name", ["x" * 129, "x" * 4000])
async def test_a_session_that_cannot_be_is_refused(name: str) -> None:
    async with served() as world:
        ann = await world.add("ann", "observer")
        answer = await post(world, ann | {"Remit-Session": name}, HELLO)
        assert answer.status_code == 400


async def test_two_names_of_sessions_are_refused() -> None:
    async with served() as world:
        ann = await world.add("ann", "observer")
        twice = [*ann.items(), ("Remit-Session", "a"), ("Remit-Session", "b")]
        async with httpx2.AsyncClient() as http:
            answer = await http.post(world.url, json=HELLO, headers=twice)
        assert answer.status_code == 400


@pytest.mark.parametrize("way", ["taken back", "ended"])
async def test_a_call_ends_with_the_token_that_began_it(way: str) -> None:
    desk: Any = own_desk()
    async with served(desk) as world:
        await world.add("ann", "open")
        lasting = {} if way == "taken back" else {"expires_in": 1}
        made = await desk.ask("operator", "key:token", {"name": "ann", **lasting})
        headers = {"Authorization": f"Bearer {made['token']}"}
        opened = await post(world, headers, HELLO)
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        version = {"MCP-Protocol-Version": "2025-11-25"}
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(httpx2.TransportError):
                    await post(world, headers | session | version, SLOW)

            tasks.start_soon(call)
            with anyio.fail_after(SOON):
                await desk.started.wait()
                if way == "taken back":
                    await desk.ask("operator", "key:revoke_token", {"id": made["id"]})
                await desk.cancelled.wait()


async def test_an_agent_that_is_revoked_while_the_first_request_waits_is_not_served() -> None:
    async with served() as world:
        ann = await world.add("ann", "observer")

        async def ask() -> None:
            with pytest.raises(httpx2.TransportError):
                await post(world, ann, HELLO)

        async with anyio.create_task_group() as tasks, world.endpoint._starting:
            tasks.start_soon(ask)
            await world._stream_stands("ann")
            await world.desk.ask("operator", "key:revoke", {"name": "ann"})
        assert world.endpoint.sessions == 0


async def test_one_agent_cannot_take_all_the_sessions_and_loses_its_own_with_its_rights() -> None:
    async with served(sessions_each=3) as world:
        ann, bob = await world.add("ann", "observer"), await world.add("bob", "observer")
        told = [(await post(world, ann, HELLO)).status_code for _ in range(4)]
        assert told == [200, 200, 200, 429]
        assert (await post(world, bob, HELLO)).status_code == 200
        await world.desk.ask("operator", "key:revoke", {"name": "ann"})
        with anyio.fail_after(PATIENCE):
            while world.endpoint.sessions > 1:  # noqa: ASYNC110 - the library signals nothing
                await anyio.sleep(0.005)
        assert world.endpoint.sessions == 1


async def test_streams_of_news_are_counted_for_the_agent_and_not_for_its_sessions() -> None:
    async with served() as world, AsyncExitStack() as stack:
        ann = await world.add("ann", "observer")
        one = await stack.enter_async_context(world.client(ann, ERAS[1]))
        other = await stack.enter_async_context(
            world.client(ann | {"Remit-Session": "chat"}, ERAS[1])
        )
        for _ in range(STREAMS):
            await stack.enter_async_context(one.listen(tools_list_changed=True))
        with pytest.raises(MCPError, match="streams of news"):
            await stack.enter_async_context(other.listen(tools_list_changed=True))


@pytest.mark.parametrize("era", ERAS)
async def test_arguments_that_one_format_alone_can_carry_are_refused_with_their_place(
    era: str,
) -> None:
    async with served() as world:
        headers = await world.add("amy", "executor")
        async with world.client(headers, era) as client:
            for value in (2**64, [{"a": -(2**63) - 1}]):
                found = await client.call_tool("state_set", {"key": "a", "value": value})
                assert found.is_error
                assert "[invalid_data]" in str(found.content)
        listed = await world.desk.ask("operator", "state:list")
        assert listed["items"] == []
        assert (await world.desk.ask("operator", "audit:query"))["items"]
