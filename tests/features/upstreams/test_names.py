"""Upstream tools by the names that a caller knows, and why one is not served."""

from pathlib import Path
from typing import Any

import msgspec
from tests.upstream_desk import OutsideDesk

from remit.features.upstreams.pins import upstream_obstacle
from remit.features.upstreams.service import Upstreams
from remit.features.upstreams.trust import CHANGED, NEW
from remit.model.principal import Principal
from remit.model.upstream import Upstream, UpstreamTool

NORTH = Upstream(name="north", command="north", trust="on_first_use")
SOUTH = Upstream(name="south", command="south", trust="on_first_use")
ASKS = Upstream(name="asks", command="asks")
FISH = UpstreamTool(name="search_fish", description="Finds fish in the sea.")
FIND = """
  find:
    description: x
    event_patterns: [discovery:discover, discovery:describe]
    mcp_tools: false
"""
PROFILES = {
    "both": "capabilities: [find]\nadditional_tools: ['mcp:*']\n",
    "one": "capabilities: [find]\nadditional_tools: ['mcp:south:search_fish']\n",
}


async def found_by(desk: OutsideDesk, who: Principal) -> dict[str, Any]:
    asked = {"query": "find fish in the sea", "render": True, "host": True}
    answer = await desk.answer("discovery:discover", asked, who)
    assert answer.error is None, answer.error
    return dict(answer.data)


async def test_discovery_names_tools_as_the_lists_of_the_caller_do(tmp_path: Path) -> None:
    desk = OutsideDesk(tmp_path, NORTH, SOUTH, extra=FIND, profiles=PROFILES)
    desk.tools = {"north": [FISH], "south": [FISH]}
    async with desk.open():
        for server in ("north", "south"):
            await desk.refresh(server)
        ann, bob = desk.agent("ann", "both"), desk.agent("bob", "one")
        for who in (ann, bob):
            listed = (await desk.answer("self/tools", None, who)).data["tools"]
            found = await found_by(desk, who)
            assert {one["name"] for one in found["capabilities"]} == {
                tool["name"] for tool in listed
            }
        told = await found_by(desk, bob)
        assert "search_fish (tool)" in told["prompt"]
        assert "north" not in str(told)
        assert "mcp__south__search_fish (tool)" in (await found_by(desk, ann))["prompt"]
        about = await desk.answer("discovery:describe", {"id": "search_fish"}, bob)
        assert about.data["event"] == "mcp:south:search_fish"


async def test_a_tool_that_is_held_says_why(tmp_path: Path) -> None:
    desk = OutsideDesk(tmp_path, NORTH, ASKS)
    desk.tools = {"north": [FISH], "asks": [FISH]}

    def held(event: str) -> str:
        servers = desk.kernel.service(Upstreams).servers
        known = {name: (one.upstream, one.known) for name, one in servers.items()}
        found = upstream_obstacle(known, event)
        return "" if found is None else f"{found.code}: {found.message}"

    async with desk.open():
        await desk.refresh("north")
        await desk.refresh("asks")
        assert held("mcp:asks:search_fish").endswith(f"is in quarantine: {NEW}")
        desk.now = 2000.0
        desk.tools["north"][:] = [msgspec.structs.replace(FISH, description="Other.")]
        await desk.refresh("north")
        assert held("mcp:north:search_fish").endswith(f"is in quarantine: {CHANGED}")
        pin = desk.kernel.service(Upstreams).servers["north"].known.tools["search_fish"]
        assert pin.waiting_since == 2000
        assert (await desk.decide("tool:asks/search_fish", "reject")).ok
        assert held("mcp:asks:search_fish").startswith("rejected: ")
        assert held("mcp:asks:none").startswith("not_offered: ")
        assert held("mcp:nobody:x").startswith("unknown_server: ")
        assert held("state:get") == ""
