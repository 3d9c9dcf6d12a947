"""The tools of 31 published servers, as they were recorded, behind one daemon."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site, eventually, new_site
from tests.conftest import ROOT
from tests.outside.conformance_site import STARTING, borrowed
from tests.outside.hosts import host

from remit.text.words import estimate_tokens
from remit_client.sync import Client

SERVER = ROOT / "tests" / "features" / "upstreams" / "client" / "servers" / "from_dump.py"
OURS = {"get_current_time", "list_directory", "read_file", "write_file"}
"""Tools that are called like tools of remit; and `list-databases` is like `list_databases`."""
TOOLS, COLLISIONS, SERVERS = 356, 13, 31
CAPABILITY = """
  borrowed:
    description: Tools of upstream servers
    event_patterns: ["mcp:*"]
"""


@pytest.fixture(scope="module")
def dumps(shared_data: Path) -> dict[str, Path]:
    """What each server listed; this folder is not part of the checkout."""
    found = {file.stem: file for file in sorted((shared_data / "mcp_tools").glob("*.json"))}
    if not found:
        pytest.skip("no shared/data/mcp_tools folder beside the checkout")
    return found


def listed(dumps: dict[str, Path]) -> dict[str, list[str]]:
    """The names of the tools, by server."""
    return {
        name: [tool["name"] for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]]
        for name, file in dumps.items()
    }


def shared_names(dumps: dict[str, Path]) -> set[str]:
    names = Counter(name for names in listed(dumps).values() for name in set(names))
    return {name for name, servers in names.items() if servers > 1}


def prepare(site: Site, dumps: dict[str, Path]) -> None:
    upstreams = {
        name: {
            "command": sys.executable,
            "args": ["-S", str(SERVER), str(file)],
            "trust": "on_first_use",
            "start": "eager",
        }
        for name, file in dumps.items()
    }
    text = json.dumps({"version": 1, "upstreams": upstreams})
    (site.folder / "upstreams.yaml").write_text(text, encoding="utf-8")
    site.catalogue.write_text(site.catalogue.read_text(encoding="utf-8") + CAPABILITY)
    site.add_profile("borrower", "capabilities: [borrowed]\n")
    site.add_profile("searcher", "extends: borrower\nexposure: discovered\n")
    site.configure(http="127.0.0.1:0", upstreams="upstreams.yaml")


@pytest.fixture(scope="module")
def daemon(dumps: dict[str, Path]) -> Iterator[Daemon]:
    with new_site() as site:
        prepare(site, dumps)
        with site.serving() as daemon:
            with daemon.operator() as operator:
                eventually(lambda: seen(operator), lambda count: count == TOOLS, seconds=STARTING)
                approve_lookalikes(operator)
                eventually(lambda: borrowed(operator), lambda count: count == TOOLS)
            daemon.new_key("ann", "borrower")
            daemon.new_key("sue", "searcher")
            yield daemon


def seen(operator: Client) -> int:
    """How many tools are served or wait."""
    servers = operator.call("upstream:list")["items"]
    return borrowed(operator) + sum(int(one["pending"]) for one in servers)


def approve_lookalikes(operator: Client) -> None:
    """Approve what waits although the servers are trusted, since it could pass for another."""
    reviews = operator.call("review:list", {"kind": "tool"})["items"]
    for review in reviews:
        operator.call("review:decide", {"id": review["id"], "decision": "approve"})
    assert {review["tool"].replace("-", "_") for review in reviews} == OURS | {"list_databases"}


async def tools_of(daemon: Daemon, name: str) -> list[dict[str, Any]]:
    with anyio.fail_after(PATIENCE):
        async with host(daemon, name) as client:
            shown = (await client.list_tools()).tools
    return [tool.model_dump(by_alias=True, exclude_none=True) for tool in shown]


def test_the_recordings_are_those_that_this_was_written_for(dumps: dict[str, Path]) -> None:
    assert len(dumps) == SERVERS
    assert sum(map(len, listed(dumps).values())) == TOOLS
    assert len(shared_names(dumps)) == COLLISIONS


async def test_every_tool_has_a_name_of_its_own_and_shared_names_are_prefixed(
    daemon: Daemon, dumps: dict[str, Path]
) -> None:
    names = [tool["name"] for tool in await tools_of(daemon, "ann")]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 64
    shared = shared_names(dumps)
    wanted = {
        f"mcp__{server}__{tool}" if tool in shared else tool
        for server, tools in listed(dumps).items()
        for tool in tools
    }
    assert len(wanted) == TOOLS
    assert wanted - set(names) == set()
    assert shared & set(names) == set()
    assert set(names) >= OURS  # those of remit are not hers, so nothing is in the way of these


def test_lint_reports_every_shared_name_without_starting_a_server(
    daemon: Daemon, dumps: dict[str, Path]
) -> None:
    found = json.loads(daemon.site.run("lint", "--json").stdout)["tool_name_conflicts"]
    assert {one["name"] for one in found} == shared_names(dumps) | OURS


async def test_a_host_that_searches_is_sent_less_than_500_tokens_and_reaches_them_all(
    daemon: Daemon,
) -> None:
    tools = await tools_of(daemon, "sue")
    assert estimate_tokens(json.dumps(tools, separators=(",", ":"))) < 500
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "sue") as sue:
            found = await sue.call_tool(
                "discover_capabilities", {"query": "merge a pull request on github"}
            )
            assert "merge_pull_request" in str(found.content)
            data = {"owner": "a", "repo": "b", "pull_number": 1}
            call = {"name": "merge_pull_request", "arguments": data}
            assert not (await sue.call_tool("call_capability", call)).is_error
