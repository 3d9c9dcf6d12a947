"""A host that starts what `mcp-config` printed gets the tools of the profile and no others."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.acceptance.site import PATIENCE, Site

GARDENER = """\
extends: executor
exposure: discovered
pinned: [state:get]
"""


async def _names(entry: dict[str, Any], folder: Path) -> set[str]:
    """What a host lists that was opened in some other folder, with few variables."""
    server = StdioServerParameters(command=entry["command"], args=entry["args"], cwd=folder)
    with anyio.fail_after(PATIENCE):
        async with Client(server) as host:
            return {tool.name for tool in (await host.list_tools()).tools}


def _entry(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (config.get("servers") or config["mcpServers"])["remit"]
    return found


@pytest.mark.parametrize("host", ["claude-code", "claude-desktop", "vscode", "cursor"])
async def test_what_is_pasted_into_a_host_starts_as_it_is(
    site: Site, tmp_path: Path, host: str
) -> None:
    done = site.run("mcp-config", "observer", "--host", host)
    listed = {tool["name"] for tool in site.answer("tools", "observer")["tools"]}
    with site.serving():
        names = await _names(_entry(json.loads(done.stdout)), tmp_path)
    assert names == {*listed, "discover_capabilities"}


async def test_the_arguments_for_claude_allow_exactly_what_the_server_lists(
    site: Site, tmp_path: Path
) -> None:
    site.add_profile("gardener", GARDENER)
    for profile in ("executor", "gardener"):
        arguments = site.answer("claude-args", profile)["arguments"]
        *pairs, strict = arguments
        assert strict == "--strict-mcp-config"
        options = dict(zip(pairs[::2], pairs[1::2], strict=True))
        with site.serving():
            names = await _names(_entry(json.loads(options["--mcp-config"])), tmp_path)
        shown = {f"mcp__remit__{name}" for name in names}
        assert shown <= set(options["--allowedTools"].split(","))
        assert ("mcp__remit__state_set" in shown) == (profile == "executor")


async def test_an_agent_is_served_with_its_own_key(site: Site, tmp_path: Path) -> None:
    with site.serving():
        site.answer("key", "new", "helper", "--profile", "observer")
        config = site.answer("mcp-config", "--agent", "helper")["config"]
        names = await _names(_entry(config), tmp_path)
    assert "state_get" in names
    assert "state_set" not in names


def test_the_tools_of_an_agent_are_what_it_holds_and_not_what_its_profile_gives(
    site: Site,
) -> None:
    with site.serving():
        words = ("--deny", "state:get", "--add", "state:set")
        site.answer("spawn", "observer", "--id", "bob", *words)
        for form in ((), ("--thin",), ("--format", "mcp"), ("--format", "openai", "--defer")):
            tools = site.answer("tools", "bob", *form)["tools"]
            names = {tool["name"] for tool in tools if "name" in tool}
            assert "state_get" not in names
            assert {"state_list", "state_set"} <= names
        query = ("discover", "read a value of the shared state", "--as", "bob")
        found = site.answer(*query, "--format", "anthropic")["content"]
        assert "state_get" not in {block["tool_name"] for block in found}
