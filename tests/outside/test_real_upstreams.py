"""Five published MCP servers behind a real daemon: listed, gated, called, with all they tell."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp_types import TextContent
from tests.acceptance.site import PATIENCE, Daemon, Site, eventually, new_site
from tests.outside.conformance_site import STARTING
from tests.outside.hosts import Ear, host, names_of
from tests.outside.parts import Outside

import remit_client
from remit_client import RemitError
from remit_client.sync import Client

COUNTS = {"everything": 13, "filesystem": 14, "memory": 9, "time": 2, "git": 12}
CAPABILITY = """
  borrowed:
    description: Tools of upstream servers
    event_patterns: ["mcp:*"]
"""
LATER = "time"
"""The server whose tools wait for a review."""
TIMES = {
    "get_current_time": {"timezone": "UTC"},
    "convert_time": {
        "source_timezone": "UTC",
        "time": "12:00",
        "target_timezone": "Asia/Tokyo",
    },
}


def entries(outside: Outside, site: Site) -> dict[str, Any]:
    commands = {
        "everything": outside.package("server-everything"),
        "filesystem": [*outside.package("server-filesystem"), str(site.folder / "files")],
        "memory": outside.package("server-memory"),
        "time": outside.server("mcp-server-time"),
        "git": [*outside.server("mcp-server-git"), "--repository", str(site.folder / "repo")],
    }
    upstreams: dict[str, Any] = {
        name: {
            "command": words[0],
            "args": words[1:],
            "trust": "review" if name == LATER else "on_first_use",
            "start": "eager",
        }
        for name, words in commands.items()
    }
    upstreams["memory"]["env"] = {"MEMORY_FILE_PATH": str(site.folder / "memory.json")}
    return upstreams


def prepare(outside: Outside, site: Site) -> None:
    (site.folder / "files").mkdir()
    (site.folder / "files" / "hello.txt").write_text("hello from outside", encoding="utf-8")
    repo = str(site.folder / "repo")
    subprocess.run(["git", "init", "-q", "-b", "main", repo], check=True)  # noqa: S603, S607
    listed = {"version": 1, "upstreams": entries(outside, site)}
    (site.folder / "upstreams.yaml").write_text(json.dumps(listed), encoding="utf-8")
    site.catalogue.write_text(site.catalogue.read_text(encoding="utf-8") + CAPABILITY)
    site.add_profile("borrower", "capabilities: [borrowed]\n")
    site.configure(http="127.0.0.1:0", upstreams="upstreams.yaml")


def known(operator: Client) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in operator.call("upstream:list")["items"]}


@pytest.fixture(scope="module")
def daemon(outside: Outside) -> Iterator[Daemon]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed, which one of the servers works with")
    with new_site() as site:
        prepare(outside, site)
        with site.serving() as daemon:
            with daemon.operator() as operator:
                eventually(
                    lambda: {name: len(one["tools"]) for name, one in known(operator).items()},
                    lambda found: found == COUNTS,
                    seconds=STARTING,
                )
            daemon.new_key("ann", "borrower")
            daemon.new_key("bob", "minimal")
            yield daemon


def waiting(daemon: Daemon) -> list[dict[str, Any]]:
    """The upstream tools that wait for a review."""
    with daemon.operator() as operator:
        found = operator.call("review:list", {"kind": "tool"})["items"]
    return [one for one in found if one["status"] == "pending"]


def approve(daemon: Daemon, review: dict[str, Any]) -> None:
    with daemon.operator() as operator:
        operator.call("review:decide", {"id": review["id"], "decision": "approve"})


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


async def test_a_host_sees_the_tools_of_all_servers_and_one_without_the_right_sees_none(
    daemon: Daemon,
) -> None:
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "ann") as ann, host(daemon, "bob") as bob:
            seen = await names_of(ann)
            assert {"get-sum", "read_text_file", "read_graph", "git_status"} <= seen
            borrowed = seen - await names_of(bob)
            # What only shares a name with a tool of remit waits for those who hold both.
            withheld = [one for one in waiting(daemon) if one["upstream"] == LATER]
            assert len(borrowed) == sum(COUNTS.values()) - len(withheld)


CALLS = [
    pytest.param("everything", "get-sum", {"a": 2, "b": 3}, "5", id="everything"),
    pytest.param(
        "filesystem", "read_text_file", {"path": "files/hello.txt"}, "hello from", id="fs"
    ),
    pytest.param("memory", "read_graph", {}, "entities", id="memory"),
    pytest.param("git", "git_branch", {"repo_path": "repo", "branch_type": "local"}, "", id="git"),
]


def placed(daemon: Daemon, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with whole paths."""
    folder = daemon.site.folder
    return {
        key: str(folder / value) if key in ("path", "repo_path") else value
        for key, value in arguments.items()
    }


@pytest.mark.parametrize(("server", "tool", "arguments", "said"), CALLS)
async def test_a_tool_is_called_over_mcp_and_over_the_socket_with_the_same_answer(
    daemon: Daemon, server: str, tool: str, arguments: dict[str, Any], said: str
) -> None:
    data = placed(daemon, arguments)
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "ann") as ann:
            result = await ann.call_tool(tool, data)
        assert not result.is_error, text_of(result)
        assert said in text_of(result)
        async with remit_client.connect(home=daemon.home) as operator:
            answer = await operator.call(f"mcp:{server}:{tool}", data)
    assert answer["content"][0]["text"] == text_of(result)


async def test_progress_of_a_long_call_reaches_the_host_and_the_socket(daemon: Daemon) -> None:
    told: list[tuple[float, float | None]] = []
    over_socket: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    tool, data = "trigger-long-running-operation", {"duration": 0.3, "steps": 3}
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "ann") as ann:
            result = await ann.call_tool(tool, data, progress_callback=note)
        assert "completed" in text_of(result)
        async with remit_client.connect(home=daemon.home) as operator:
            event = f"mcp:everything:{tool}"
            await operator.call(event, data, on_progress=lambda one: over_socket.append(one.done))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert over_socket == [1, 2, 3]


async def test_structured_output_passes_through(daemon: Daemon) -> None:
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "ann") as ann:
            result = await ann.call_tool("get-structured-content", {"location": "Chicago"})
    assert {"temperature", "conditions", "humidity"} == set(result.structured_content)


async def test_an_image_passes_through(daemon: Daemon) -> None:
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "ann") as ann:
            result = await ann.call_tool("get-tiny-image", {})
    assert [block.type for block in result.content].count("image") == 1


async def test_what_a_tool_says_about_its_failure_passes_through(daemon: Daemon) -> None:
    data = {"path": "/etc/hostname"}
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "ann") as ann:
            result = await ann.call_tool("read_text_file", data)
        assert result.is_error
        assert "Access denied" in text_of(result)
        async with remit_client.connect(home=daemon.home) as operator:
            with pytest.raises(RemitError) as caught:
                await operator.call("mcp:filesystem:read_text_file", data)
    assert caught.value.code == "tool_failed"


async def test_arguments_that_do_not_fit_never_reach_the_server(daemon: Daemon) -> None:
    with daemon.operator() as operator:
        before = known(operator)["everything"]["calls"]
        with anyio.fail_after(PATIENCE):
            async with host(daemon, "ann") as ann:
                result = await ann.call_tool("get-sum", {"a": "two", "b": 3})
        assert result.is_error
        assert known(operator)["everything"]["calls"] == before


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_host_hears_of_tools_that_were_approved_and_calls_them(
    daemon: Daemon, mode: str
) -> None:
    """The tools of `time` wait; each turn approves one of the two."""
    ear = Ear()
    review = next(one for one in waiting(daemon) if one["upstream"] == LATER)
    with anyio.fail_after(PATIENCE):
        async with host(daemon, "ann", mode=mode, message_handler=ear) as ann:
            before = await names_of(ann)
            async with ear.listening(ann) as news:
                approve(daemon, review)
                await news()
            (tool,) = await names_of(ann) - before
            assert not (await ann.call_tool(tool, TIMES[review["tool"]])).is_error


def test_a_tool_that_has_a_name_of_ours_waits_even_where_others_are_trusted(daemon: Daemon) -> None:
    ours = {one["tool"] for one in waiting(daemon) if one["upstream"] == "filesystem"}
    assert ours == {"read_file", "write_file", "list_directory"}
