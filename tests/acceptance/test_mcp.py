"""`remit mcp` as a host starts it: one process for one agent, beside a real daemon."""

import json
import platform
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.acceptance.site import PATIENCE, Daemon, Site, eventually, new_site

ERAS = ("legacy", "2026-07-28")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def site() -> Generator[Site]:
    with new_site() as found:
        yield found


@asynccontextmanager
async def host(site: Site, era: str, *arguments: str, **env: str) -> AsyncGenerator[Client]:
    """A host that starts our command."""
    start = StdioServerParameters(
        command=sys.executable,
        args=["-m", "remit", "mcp", *arguments, "--home", str(site.home)],
        env=site.environment(env),
        cwd=site.folder,
    )
    async with Client(start, mode=era) as client:
        yield client


@contextmanager
def process(site: Site, *arguments: str) -> Generator["subprocess.Popen[bytes]"]:
    """Our command with its streams in our hands."""
    command = [sys.executable, "-m", "remit", "mcp", *arguments, "--home", str(site.home)]
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=site.folder, env=site.environment(), stdin=pipe, stdout=pipe, stderr=pipe
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def say(started: "subprocess.Popen[bytes]", message: Any) -> Any:
    """Send a message and read the answer to it."""
    assert started.stdin is not None
    assert started.stdout is not None
    started.stdin.write(json.dumps(message).encode() + b"\n")
    started.stdin.flush()
    return json.loads(started.stdout.readline())


def agents(daemon: Daemon) -> list[str]:
    with daemon.operator() as operator:
        items = operator.call("agent:list")["items"]
    return [one["agent_id"] for one in items if one["kind"] == "agent"]


def reload(daemon: Daemon) -> None:
    with daemon.operator() as operator:
        operator.call("config:reload")


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_of_a_profile_is_an_agent_that_ends_with_it(daemon: Daemon, era: str) -> None:
    site = daemon.site
    async with host(site, era, "--profile", "base_multi_agent") as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {"state_set", "discover_capabilities"} <= listed
        await client.call_tool("state_set", {"key": "a", "value": 1})
        assert [one for one in agents(daemon) if one.startswith("mcp-base_multi_agent-")]
    eventually(lambda: agents(daemon), lambda found: found == [])
    audit = site.answer("audit", "--event", "state:set")
    assert audit["items"][-1]["principal"].startswith("mcp-base_multi_agent-")


@pytest.mark.parametrize("era", ERAS)
async def test_an_edit_reaches_the_host_of_an_agent(daemon: Daemon, era: str) -> None:
    site = daemon.site
    site.add_profile("reader", "capabilities: {state_read: true}\n")
    told = anyio.Event()

    async def note(message: Any) -> None:
        assert message is not None
        told.set()

    reload(daemon)
    name = f"ann-{era}"
    site.answer("key", "new", name, "--profile", "reader")
    async with host(site, era, "--agent", name) as client:
        assert "state_set" not in {tool.name for tool in (await client.list_tools()).tools}
        client.session._message_handler = note
        site.add_profile("reader", "capabilities: {state_write: true}\n")
        with anyio.fail_after(PATIENCE):
            if era == "legacy":
                daemon.reload()
                await told.wait()
            else:
                async with client.listen(tools_list_changed=True) as news:
                    daemon.reload()
                    await anext(aiter(news))
        assert "state_set" in {tool.name for tool in (await client.list_tools()).tools}


async def test_what_changed_while_the_daemon_was_away_is_told_when_it_is_back(site: Site) -> None:
    site.add_profile("reader", "capabilities: {state_read: true}\n")
    told = anyio.Event()

    async def note(message: Any) -> None:
        assert message is not None
        told.set()

    first = site.start()
    try:
        site.answer("key", "new", "ann", "--profile", "reader")
        async with host(site, "legacy", "--agent", "ann") as client:
            await client.list_tools()
            client.session._message_handler = note
            first.stop()
            site.add_profile("reader", "capabilities: {state_write: true}\n")
            with site.serving(), anyio.fail_after(PATIENCE):
                await told.wait()
                names = {tool.name for tool in (await client.list_tools()).tools}
        assert "state_set" in names
    finally:
        first.kill()


def test_a_revoked_agents_host_is_cut_off(daemon: Daemon) -> None:
    site = daemon.site
    with daemon.operator() as operator:
        site.answer("key", "new", "eve", "--profile", "observer")
        with process(site, "--agent", "eve") as started:
            say(started, HELLO)
            operator.call("key:revoke", {"name": "eve"})
            assert started.wait(PATIENCE) == 3
            assert started.stderr is not None
            assert b"unauthorised" in started.stderr.read()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_told_to_stop_leaves_no_agent_behind(daemon: Daemon, sent: int) -> None:
    site = daemon.site
    with process(site, "--profile", "observer") as started:
        say(started, HELLO)
        assert len(agents(daemon)) == 1
        started.send_signal(sent)
        assert started.wait(PATIENCE) == 0
    assert agents(daemon) == []


def test_the_agent_of_a_killed_process_ends_when_the_next_one_starts(daemon: Daemon) -> None:
    site = daemon.site
    with process(site, "--profile", "observer") as started:
        say(started, HELLO)
        left = agents(daemon)
        started.kill()
    with process(site, "--profile", "observer") as started:
        say(started, HELLO)
        assert len(agents(daemon)) == 1
        assert agents(daemon) != left


def test_without_a_daemon_the_repair_is_told_and_nothing_is_written_to_the_host(site: Site) -> None:
    done = site.run("mcp", "--profile", "observer")
    assert done.returncode == 3
    assert done.stdout == ""
    assert "remit serve" in done.stderr


def test_the_embedded_daemon_serves_and_ends_with_its_host(site: Site) -> None:
    with process(site, "--profile", "observer", "--embedded") as started:
        answer = say(started, HELLO)
        assert answer["result"]["serverInfo"]["name"] == "remit"
        assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}
        assert started.stdin is not None
        started.stdin.close()
        assert started.wait(PATIENCE) == 0
    assert not (site.home / "endpoint").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "whose tools"),
        (("--agent", "ann", "--profile", "observer"), "not both"),
        (("--agent", "nobody"), "no key of 'nobody'"),
        (("--agent", "../operator"), "no key of"),
        (("--profile", "no_such_profile"), "no_such_profile"),
    ],
)
def test_a_mistake_is_told_on_stderr_alone(
    daemon: Daemon, arguments: tuple[str, ...], said: str
) -> None:
    site = daemon.site
    done = site.run("mcp", *arguments)
    assert done.returncode != 0
    assert done.stdout == ""
    assert said in done.stderr


async def test_garbage_from_a_host_ends_nothing(daemon: Daemon) -> None:
    site = daemon.site
    with process(site, "--profile", "observer") as started:
        assert started.stdin is not None
        for line in (b"\xff\xfe\n", b"nonsense\n", b"[]\n", b'{"jsonrpc": "2.0"}\n', b"\n"):
            started.stdin.write(line)
        started.stdin.flush()
        answers = [say(started, HELLO)]
        while "serverInfo" not in str(answers[-1]):
            assert started.stdout is not None
            answers.append(json.loads(started.stdout.readline()))


def test_a_host_that_reads_no_more_has_gone_away(daemon: Daemon) -> None:
    site = daemon.site
    with process(site, "--profile", "observer") as started:
        say(started, HELLO)
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        for method in ("ping", "tools/list"):
            message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": {}}
            started.stdin.write(json.dumps(message).encode() + b"\n")
            started.stdin.flush()
        assert started.wait(PATIENCE) == 0
        assert b"Traceback" not in started.stderr.read()
    assert agents(daemon) == []


def test_while_the_daemon_is_away_its_host_is_told_so_and_not_that_there_is_nothing(
    site: Site,
) -> None:
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    with site.serving():
        site.answer("key", "new", "ann", "--profile", "observer")
    daemon = site.start()
    try:
        with process(site, "--agent", "ann") as started:
            say(started, HELLO)
            assert say(started, listing)["result"]["tools"]
            daemon.stop()
            assert "[unreachable]" in say(started, listing)["error"]["message"]
            with site.serving():
                assert say(started, listing)["result"]["tools"]
    finally:
        daemon.kill()


def test_the_agent_of_a_process_on_another_machine_is_left_alone(daemon: Daemon) -> None:
    site = daemon.site
    with daemon.operator() as operator:
        with process(site, "--profile", "observer") as started:
            say(started, HELLO)
            listed = operator.call("agent:list")["items"]
            name = next(one["name"] for one in listed if one["kind"] == "agent")
        elsewhere = name.replace(platform.node(), "elsewhere").replace(str(started.pid), "999999")
        asked = {"agent_id": "far", "profile": "observer", "name": elsewhere, "launch": {}}
        operator.call("agent:spawn", asked)
        with process(site, "--profile", "observer") as started:
            say(started, HELLO)
            assert "far" in agents(daemon)
        operator.call("agent:terminate", {"agent_id": "far"})
