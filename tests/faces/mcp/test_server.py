"""MCP has the same door as everybody: lists follow the grant alone, refusals are written down."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.faces.mcp.test_tools import modest, names
from tests.faces.mcp.world import ERAS, World, served
from tests.fakes import Desk, built_in_handlers, texts
from tests.features.skills.skill_folder import SkillFolder

BARE = """
  some:
    description: two events and nothing else
    event_patterns: [state:get, state:list]
  more:
    description: one more
    event_patterns: [state:set]
"""
READER, WRITER = (
    "name: reader\ncapabilities: [some]\n",
    "name: reader\ncapabilities: [some, more]\n",
)


def bare_desk() -> Desk:
    """No capability is everybody's: nobody may ask for a list or for news."""
    return Desk(built_in_handlers(), texts(BARE, reader="capabilities: [some]\n"))


async def denials(world: World) -> list[dict[str, Any]]:
    """What the audit says of ann, oldest first."""
    asked = {"agent": "ann", "outcome": "denied"}
    rows = (await world.desk.ask("operator", "audit:query", asked))["items"]
    return list(reversed(rows))


async def refused(client: Any, name: str, arguments: dict[str, Any] | None = None) -> None:
    with pytest.raises(MCPError) as told:
        await client.call_tool(name, arguments or {})
    error = told.value.error
    named = name if name != "call_capability" else str((arguments or {})["name"])
    assert (error.code, error.message) == (-32602, f"Unknown tool: {named}")
    assert "decision" not in repr(error.data)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", ["state_set", "state:set", "tool:state:set", "no_such", "no:such"])
async def test_a_refused_call_is_a_denial_like_every_other(era: str, name: str) -> None:
    async with served(bare_desk()) as world:
        async with world.client(await world.add("ann", "reader"), era) as client:
            await client.list_tools()
            before = world.desk.counters.denied
            await refused(client, name, {"key": "a", "value": 1})
        (row,) = await denials(world)
        assert (row["principal"], row["event"], row["reason"]) == ("ann", name, "no_grant")
        assert row["decision"]
        assert world.desk.counters.denied == before + 1
        assert world.desk.counters.by_caller["ann"].denied == 1
        assert await world.desk.store.state_get("a") is None


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", ["state_set", "state:set", "key:add", "no:such", "skill:none"])
async def test_a_refused_call_inside_of_another_is_a_denial_too(era: str, name: str) -> None:
    async with served() as world:
        ann = await modest(world, "exposure: discovered\ndisallowed_tools: [state:set]\n")
        async with world.client(ann, era) as client:
            await refused(client, "call_capability", {"name": name})
        assert [row["event"] for row in await denials(world)] == [name]


@pytest.mark.parametrize("era", ERAS)
async def test_what_was_listed_and_is_taken_away_is_refused_by_its_event(era: str) -> None:
    async with served(bare_desk()) as world:
        await world.edit("reader", WRITER)
        async with world.client(await world.add("ann", "reader"), era) as client:
            await client.call_tool("state_set", {"key": "a", "value": 1})
            await world.edit("reader", READER)
            await refused(client, "state_set", {"key": "a", "value": 2})
            await client.list_tools()
            await refused(client, "state_set", {"key": "a", "value": 3})
        await world.desk.kernel.audit_log.denials.flush()
        rows = await denials(world)
        # It was shown that name for that event, so this tells it nothing new.
        assert [(row["event"], row["count"]) for row in rows] == [("state:set", 1)] * 2
        assert len({row["decision"] for row in rows}) == 1


@pytest.mark.parametrize("name", ["discover_capabilities", "call_capability"])
async def test_the_tools_of_the_door_are_refused_like_any_other(name: str) -> None:
    async with served(bare_desk()) as world:
        async with world.client(await world.add("ann", "reader"), ERAS[1]) as client:
            arguments = {"query": "x", "name": name}
            await refused(client, name, arguments)
        assert [row["event"] for row in await denials(world)] == [name]


async def test_a_name_without_end_is_refused_and_cut_in_the_audit() -> None:
    async with served(bare_desk()) as world:
        async with world.client(await world.add("ann", "reader"), ERAS[1]) as client:
            with pytest.raises(MCPError, match="Unknown tool: x"):
                # Longer ones do not come in: this era repeats the name in the head of a request.
                await client.call_tool("x" * 10_000, {})
        (row,) = await denials(world)
        assert len(row["event"]) < 1_000


@pytest.mark.parametrize("era", ERAS)
async def test_no_event_must_be_granted_for_lists_and_calls(era: str) -> None:
    async with served(bare_desk()) as world:
        async with world.client(await world.add("ann", "reader"), era) as client:
            assert await names(client) == {"state_get", "state_list"}
            assert not (await client.call_tool("state_list", {})).is_error
        assert await denials(world) == []


@pytest.mark.parametrize("era", ERAS)
async def test_no_event_must_be_granted_for_news(era: str) -> None:
    async with (
        served(bare_desk()) as world,
        world.listening(await world.add("ann", "reader"), era) as (client, told),
    ):
        await world.edit("reader", WRITER)
        await told.wait()
        assert await names(client) == {"state_get", "state_list", "state_set"}


@pytest.mark.parametrize("era", ERAS)
async def test_lists_that_a_host_asks_for_by_itself_are_no_denials(era: str) -> None:
    async with served(bare_desk()) as world:
        async with world.listening(await world.add("ann", "reader"), era) as (client, _):
            resources, prompts = await client.list_resources(), await client.list_prompts()
        assert (resources.resources, prompts.prompts) == ([], [])
        now = world.desk.authority.catalogue.revision
        for one in (resources, prompts):
            assert one.meta is not None
            assert one.meta["remit/revision"] == now
        assert await denials(world) == []


async def test_a_session_narrows_the_list_and_the_calls_that_name_it() -> None:
    async with served(bare_desk()) as world:
        ann = await world.add("ann", "reader")
        step = {"session": "s", "allowed_tools": ["state:list"]}
        await world.desk.ask("operator", "session:open", step)
        async with world.client(ann | {"Remit-Session": "s"}, ERAS[1]) as client:
            assert await names(client) == {"state_list"}
            await refused(client, "state_get", {"key": "a"})
        async with world.client(ann, ERAS[1]) as client:
            assert await names(client) == {"state_get", "state_list"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_list_says_which_revision_it_follows_from(era: str) -> None:
    async with served(bare_desk()) as world:
        async with world.client(await world.add("ann", "reader"), era) as client:
            first = await client.list_tools()
            # Another profile: the list of this one stays the same.
            await world.edit("other", "name: other\ncapabilities: [more]\n")
            second = await client.list_tools()
        said = [one.meta["remit/revision"] for one in (first, second) if one.meta]
        assert said == [said[0], world.desk.authority.catalogue.revision]
        assert said[0] < said[1]
        assert first.tools == second.tools


# ---- the whole of what was found ----


FINDER = """
  finding:
    description: d
    event_patterns: ["discovery:*"]
    always_included: true
    mcp_tools: false
"""
LONG = "\n".join(f"Step {number}: look at the table of tides again." for number in range(2_000))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("exposure", ["all", "turn", "discovered"])
async def test_what_is_cut_names_a_way_to_the_rest_that_works_here(
    tmp_path: Path, era: str, exposure: str
) -> None:
    site = SkillFolder(tmp_path / "caps", FINDER, reader=f"exposure: {exposure}\n")
    site.skill("tides", body=f"{LONG}\nThe last word.")
    async with served(site.desk) as world:
        async with world.client(await world.add("ann", "reader"), era) as client:
            asked = {"query": "look at the table of tides"}
            text = (await client.call_tool("discover_capabilities", asked)).content[0].text  # type: ignore[union-attr]
            assert "The last word." not in text
            assert "all of it: discover_capabilities skill:tides]" in text
            whole = await client.call_tool("discover_capabilities", {"query": "skill:tides"})
            assert "The last word." in whole.content[0].text  # type: ignore[union-attr]
            if exposure == "discovered":
                same = await client.call_tool("call_capability", {"name": "skill:tides"})
                assert same.content == whole.content
        assert await denials(world) == []


@pytest.mark.parametrize("era", ERAS)
async def test_an_event_that_no_list_shows_is_called_by_its_name_or_id(era: str) -> None:
    async with served() as world:
        ann = await modest(world, "exposure: discovered\n")
        async with world.client(ann, era) as client:
            for name in ("discovery:describe", "tool:discovery:describe"):
                inner = {"name": name, "arguments": {"id": "tool:state:get"}}
                told = await client.call_tool("call_capability", inner)
                assert told.structured_content is not None
                assert told.structured_content["event"] == "state:get"
            for name in ("state_list", "state:list", "tool:state:list"):
                done = await client.call_tool("call_capability", {"name": name})
                assert done.structured_content is not None
                assert done.structured_content["items"] == []
        assert await denials(world) == []


SET_UP = """
from opentelemetry.trace import NoOpTracerProvider, set_tracer_provider
set_tracer_provider(NoOpTracerProvider())
"""
TELL = """
from remit.faces.mcp.server import McpServer
served = McpServer(lambda ctx: ctx)
print(["OpenTelemetry" in type(one).__name__ for one in served.server.middleware].count(True))
"""


@pytest.mark.parametrize(("before", "makes_spans"), [("", False), (SET_UP, True)])
def test_requests_are_traced_when_a_module_has_set_that_up(
    before: str, *, makes_spans: bool
) -> None:
    done = subprocess.run(  # noqa: S603 - a provider is set once in a process
        [sys.executable, "-c", before + TELL], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip() == "1") is makes_spans
