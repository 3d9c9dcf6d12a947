"""A published server that is reached over HTTP, goes away and comes back."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import anyio
import anyio.lowlevel
import pytest
from mcp import Client
from tests.acceptance.site import PATIENCE, Daemon, Site, eventually, new_site
from tests.outside.conformance_site import STARTING, borrowed
from tests.outside.hosts import host, names_of
from tests.outside.parts import Outside

TOOLS = 13
CAPABILITY = """
  borrowed:
    description: Tools of an upstream server
    event_patterns: ["mcp:*"]
"""


@contextmanager
def everything(outside: Outside, port: int) -> Iterator[None]:
    """The server, listening."""
    command = [*outside.package("server-everything"), "streamableHttp"]
    env = {"PATH": os.environ["PATH"], "PORT": str(port)}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=env, stdout=quiet, stderr=quiet) as process:  # noqa: S603
        try:
            eventually(lambda: is_open(port), bool, seconds=STARTING)
            yield
        finally:
            process.kill()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def site(port: int) -> Iterator[Site]:
    with new_site() as site:
        entry = {"url": f"http://127.0.0.1:{port}/mcp", "trust": "on_first_use", "start": "eager"}
        listed = {"version": 1, "upstreams": {"web": entry}}
        (site.folder / "upstreams.yaml").write_text(json.dumps(listed), encoding="utf-8")
        site.catalogue.write_text(site.catalogue.read_text(encoding="utf-8") + CAPABILITY)
        site.add_profile("borrower", "capabilities: [borrowed]\n")
        site.configure(http="127.0.0.1:0", upstreams="upstreams.yaml")
        yield site


@pytest.fixture
def port() -> int:
    return free_port()


async def add(client: Client) -> str:
    result = await client.call_tool("get-sum", {"a": 2, "b": 3})
    return str(result.content[0])


def wait_for_tools(daemon: Daemon) -> None:
    with daemon.operator() as operator:
        eventually(lambda: borrowed(operator), lambda count: count == TOOLS, seconds=STARTING)


async def test_its_tools_stay_listed_while_it_is_away_and_work_again_when_it_is_back(
    outside: Outside, site: Site, port: int
) -> None:
    with ExitStack() as running:
        running.enter_context(everything(outside, port))
        with site.serving() as daemon:
            wait_for_tools(daemon)
            running.close()
            daemon.new_key("ann", "borrower")
            with anyio.fail_after(3 * PATIENCE):
                async with host(daemon, "ann") as ann:
                    assert "get-sum" in await names_of(ann)
                    assert "[unavailable]" in await add(ann)
                    running.enter_context(everything(outside, port))
                    while "sum of 2 and 3 is 5" not in await add(ann):
                        await anyio.lowlevel.checkpoint()
