"""Whoever shows no token that counts is nobody, at every request and for as long as it lasts."""

from typing import Any

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from tests.faces.http.world import everything
from tests.faces.mcp.test_tools import own_desk
from tests.faces.mcp.world import ERAS, PATIENCE, World, served

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


async def post(world: World, headers: dict[str, str], body: Any = None) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        return await http.post(world.url, json=body or ASKED, headers=ACCEPT | headers)


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer x", "Basic eDp5", "Bearer " + "x" * 4000])
async def test_without_a_token_that_counts_nothing_is_answered(shown: str) -> None:
    async with served() as world:
        await world.add("ann", "observer")
        answer = await post(world, {"Authorization": shown} if shown else {})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "tools" not in answer.text


async def test_two_tokens_at_once_are_none() -> None:
    async with served() as world:
        one = (await world.add("ann", "observer"))["Authorization"]
        async with httpx2.AsyncClient() as http:
            twice = [("Authorization", one), ("Authorization", one), *ACCEPT.items()]
            answer = await http.post(world.url, json=ASKED, headers=twice)
        assert answer.status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "[::1].evil.example"}, 421),
        ({"Origin": "http://[::1].evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:80.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_a_page_of_elsewhere_is_refused(headers: dict[str, str], status: int) -> None:
    async with served(origins=("https://good.example",)) as world:
        token = await world.add("ann", "observer")
        assert (await post(world, token | headers)).status_code == status
        good = token | {"Origin": "https://good.example"}
        assert (await post(world, good, HELLO)).status_code == 200


@pytest.mark.parametrize("name", ["LOCALHOST:80", "127.0.0.1", "127.1.2.3:7421", "[::1]:7421"])
async def test_this_machine_may_be_asked_under_each_name_of_its_own(name: str) -> None:
    async with served() as world:
        token = await world.add("ann", "observer")
        headers = token | {"Host": name, "Origin": f"http://{name}"}
        assert (await post(world, headers, HELLO)).status_code == 200


async def test_the_session_of_another_agent_does_not_exist() -> None:
    async with served() as world:
        ann, bob = await world.add("ann", "base_multi_agent"), await world.add("bob", "observer")
        opened = await post(world, ann, HELLO)
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        version = {"MCP-Protocol-Version": "2025-11-25"}
        stolen = await post(world, bob | session | version)
        made_up = await post(world, bob | {"Mcp-Session-Id": "0" * 32} | version)
        assert stolen.status_code == made_up.status_code == 404
        assert stolen.text == made_up.text


@pytest.mark.parametrize("era", ERAS)
async def test_a_revoked_agent_is_cut_at_once_and_stays_out(era: str) -> None:
    async with served() as world:
        ann, bob = await world.add("ann", "observer"), await world.add("bob", "observer")
        async with world.listening(bob, era, "bob") as (other, _):
            with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever the library makes of it
                await _revoked_in_the_middle(world, ann, era)
            assert (await post(world, ann)).status_code == 401
            assert (await other.list_tools()).tools


async def _revoked_in_the_middle(world: World, ann: dict[str, str], era: str) -> None:
    async with world.listening(ann, era) as (client, _):
        await world.desk.ask("operator", "key:revoke", {"name": "ann"})
        with anyio.fail_after(PATIENCE):
            await client.list_tools()


async def test_a_call_that_runs_ends_when_its_agent_is_revoked() -> None:
    desk: Any = own_desk()
    async with served(desk) as world:
        ann = await world.add("ann", "open")

        async def call() -> None:
            async with world.client(ann, "legacy") as client:
                await client.call_tool("own_slow", {})

        async with anyio.create_task_group() as tasks:

            async def attempt() -> None:
                with pytest.raises(BaseException):  # noqa: B017, PT011 - as above
                    await call()

            tasks.start_soon(attempt)
            await desk.started.wait()
            await desk.ask("operator", "key:revoke", {"name": "ann"})
            with anyio.fail_after(PATIENCE):
                await desk.cancelled.wait()
            tasks.cancel_scope.cancel()


async def test_a_token_that_was_taken_back_counts_no_more() -> None:
    async with served() as world:
        await world.add("ann", "observer")
        made = await world.desk.ask("operator", "key:token", {"name": "ann"})
        headers = {"Authorization": f"Bearer {made['token']}"}
        assert (await post(world, headers, HELLO)).status_code == 200
        await world.desk.ask("operator", "key:revoke_token", {"id": made["id"]})
        assert (await post(world, headers, HELLO)).status_code == 401


async def test_a_body_that_never_ends_is_not_waited_for() -> None:
    async with served() as world:
        token = (await world.add("ann", "observer"))["Authorization"]
        url = httpx2.URL(world.url)
        assert url.port is not None
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        async with await anyio.connect_tcp(url.host, url.port) as stream:
            await stream.send(head.encode())
            assert not (await everything(stream)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("era", ERAS)
async def test_without_a_token_one_is_the_agent_that_the_operator_named(era: str) -> None:
    desk = own_desk()
    async with served(desk, anonymous="guest") as world:
        assert (await post(world, {}, HELLO)).status_code == 401
        await world.add("guest", "open")
        async with world.client({}, era) as client:
            assert (await client.call_tool("own_nothing", {})).is_error is False
        assert (await post(world, {"Authorization": "Bearer wrong"}, HELLO)).status_code == 401


@pytest.mark.parametrize("era", ERAS)
async def test_a_hundred_sessions_at_once_each_see_their_own(era: str) -> None:
    async with served() as world:
        ann, bob = await world.add("ann", "base_multi_agent"), await world.add("bob", "observer")
        seen: list[tuple[int, bool]] = []

        async def visit(number: int) -> None:
            headers = ann if number % 2 else bob
            async with world.client(headers, era) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
            seen.append((number % 2, "state_set" in names))

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(visit, number)
        assert len(seen) == 100
        assert set(seen) == {(1, True), (0, False)}


async def test_guessing_another_agents_tool_in_an_open_session_finds_nothing() -> None:
    async with served() as world:
        ann, bob = await world.add("ann", "base_multi_agent"), await world.add("bob", "observer")
        async with world.client(ann, ERAS[0]) as theirs, world.client(bob, ERAS[0]) as mine:
            await theirs.list_tools()
            for tool in (await theirs.list_tools()).tools:
                if tool.name in {one.name for one in (await mine.list_tools()).tools}:
                    continue
                with pytest.raises(MCPError, match="Unknown tool"):
                    await mine.call_tool(tool.name, {})
