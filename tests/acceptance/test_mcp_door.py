"""`remit mcp` for agents that hold next to nothing, and for servers that offer the same names."""

from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.acceptance.site import PATIENCE, Site, new_site
from tests.acceptance.test_mcp import ERAS, host
from tests.acceptance.upstream_site import Outside, approve, ask, tool, waiting

ALONE = 'disallowed_tools: ["system:*", "event:*", "permission:*", "discovery:*", "skill:*"]\n'
NORTH = f"{ALONE}additional_tools: [mcp:north:search_fish]\n"
BOTH = f"{ALONE}additional_tools: [mcp:north:search_fish, mcp:south:search_fish]\n"


@pytest.fixture
def outside() -> Iterator[Outside]:
    with new_site() as site:
        yield Outside(site)


async def names(client: Client) -> set[str]:
    return {one.name for one in (await client.list_tools()).tools if "fish" in one.name}


def denials(site: Site, who: str) -> list[dict[str, Any]]:
    """What the audit says was refused to somebody, newest first."""
    found: list[dict[str, Any]] = site.answer("audit", "--agent", who, "--outcome", "denied")[
        "items"
    ]
    return found


@pytest.mark.parametrize("era", ERAS)
async def test_one_granted_tool_is_enough_to_be_served_and_told(outside: Outside, era: str) -> None:
    site = outside.site
    outside.add("north", tool("search_fish"), tool("count_fish"))
    site.add_profile("fisher", NORTH)
    told = anyio.Event()

    async def note(message: Any) -> None:
        assert message is not None
        told.set()

    with site.serving() as daemon:
        ask(daemon, "upstream:check", name="north")
        site.answer("key", "new", "ann", "--profile", "fisher")
        async with host(site, era, "--agent", "ann") as client:
            assert {one.name for one in (await client.list_tools()).tools} == {
                *(one["name"] for one in site.answer("tools", "ann")["tools"])
            }
            assert await names(client) == {"search_fish"}
            assert not (await client.call_tool("search_fish", {})).is_error
            assert len(outside.calls("north")) == 1
            client.session._message_handler = note
            site.add_profile("fisher", NORTH.replace("search", "count"))
            with anyio.fail_after(PATIENCE):
                if era == "legacy":
                    daemon.reload()
                    await told.wait()
                else:
                    async with client.listen(tools_list_changed=True) as news:
                        daemon.reload()
                        await anext(aiter(news))
            assert await names(client) == {"count_fish"}
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("search_fish", {})
        assert len(outside.calls("north")) == 1


async def test_a_refused_call_is_in_the_audit_the_tail_and_the_counts(outside: Outside) -> None:
    site = outside.site
    outside.add("north", tool("search_fish"), tool("count_fish"))
    site.add_profile("fisher", NORTH)
    names_asked = ("count_fish", "mcp:north:count_fish", "no_such_tool")
    with site.serving() as daemon, daemon.operator() as watching:
        ask(daemon, "upstream:check", name="north")
        site.answer("key", "new", "ann", "--profile", "fisher")
        with watching.subscribe("audit:entry") as entries:
            async with host(site, ERAS[0], "--agent", "ann") as client:
                for name in names_asked:
                    with pytest.raises(MCPError, match=f"Unknown tool: {name}"):
                        await client.call_tool(name, {})
            rows = denials(site, "ann")
            assert [row["event"] for row in rows] == list(reversed(names_asked))
            assert all(row["decision"] and row["reason"] == "no_grant" for row in rows)
            pushed = [entries.wait(PATIENCE) for _ in names_asked]
            told = [one.data["event"] for one in pushed if one is not None]
            assert told == list(names_asked)
        assert ask(daemon, "system:stats")["by_agent"]["ann"]["denied"] == len(names_asked)
    assert outside.calls("north") == []


async def test_a_name_keeps_its_target_when_a_server_is_put_in_quarantine_or_the_daemon_restarts(
    outside: Outside,
) -> None:
    site = outside.site
    outside.add("north", tool("search_fish"))
    outside.add("south", tool("search_fish"))
    site.add_profile("one", NORTH)
    site.add_profile("two", BOTH)
    long = {"mcp__north__search_fish", "mcp__south__search_fish"}
    with site.serving() as daemon:
        for server in ("north", "south"):
            ask(daemon, "upstream:check", name=server)
        site.answer("key", "new", "ann", "--profile", "two")
        site.answer("key", "new", "bob", "--profile", "one")
        async with (
            host(site, ERAS[0], "--agent", "ann") as ann,
            host(site, ERAS[0], "--agent", "bob") as bob,
        ):
            assert await names(ann) == long
            # Bob holds one of them, and does not learn that there is another.
            assert await names(bob) == {"search_fish"}
            site.add_profile("one", BOTH)
            ask(daemon, "config:reload")
            assert await names(bob) == {"search_fish", "mcp__south__search_fish"}
            outside.says("north", tool("search_fish", "Now it does something else."))
            ask(daemon, "upstream:refresh")
            assert await names(ann) == {"mcp__south__search_fish"}
            assert await names(bob) == {"mcp__south__search_fish"}
            for client in (ann, bob):
                with pytest.raises(MCPError, match="Unknown tool"):
                    await client.call_tool("search_fish", {})
            assert outside.calls("south") == []
            assert [row["event"] for row in denials(site, "bob")] == ["mcp:north:search_fish"]
    with site.serving():
        async with host(site, ERAS[1], "--agent", "bob") as bob:
            assert await names(bob) == {"mcp__south__search_fish"}
            with pytest.raises(MCPError, match="Unknown tool"):
                await bob.call_tool("search_fish", {})
            assert not (await bob.call_tool("mcp__south__search_fish", {})).is_error


async def test_a_tool_with_the_name_of_one_of_ours_waits_only_where_both_are_held(
    outside: Outside,
) -> None:
    site = outside.site
    outside.add("disk", tool("read_file"))
    site.add_profile("outsider", f"{ALONE}additional_tools: [mcp:disk:read_file]\n")
    site.add_profile("both", f"{ALONE}additional_tools: [mcp:disk:read_file, file:read_file]\n")
    with site.serving() as daemon:
        ask(daemon, "upstream:check", name="disk")
        for name, profile in (("ann", "outsider"), ("bob", "both")):
            site.answer("key", "new", name, "--profile", profile)
        async with (
            host(site, ERAS[0], "--agent", "ann") as ann,
            host(site, ERAS[0], "--agent", "bob") as bob,
        ):
            assert not (await ann.call_tool("read_file", {})).is_error
            assert len(outside.calls("disk")) == 1
            own = await bob.call_tool("read_file", {"path": "/no/such"})
            assert own.is_error  # the tool of remit, which has no such file
            with pytest.raises(MCPError, match="Unknown tool"):
                await bob.call_tool("mcp__disk__read_file", {})
            assert len(outside.calls("disk")) == 1
            assert waiting(daemon)["tool:disk/read_file"]["status"] == "pending"
            approve(daemon, "tool:disk/read_file")
            assert waiting(daemon) == {}
            assert not (await bob.call_tool("mcp__disk__read_file", {})).is_error
            assert not (await ann.call_tool("read_file", {})).is_error
        assert len(outside.calls("disk")) == 3


def test_requests_about_oneself_need_no_data(site: Site) -> None:
    site.add_profile("reader", "capabilities: [state_read]\n")
    with site.serving() as daemon, daemon.client("ann", "reader") as ann:
        assert ann.call("self/tools")["tools"]
        assert ann.call("self/skills")["items"] == []
        assert ann.call("self/news")["revision"] == 1
