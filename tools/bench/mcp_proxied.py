"""The part of `mcp.py` about calls that remit passes on to a server behind it."""

import json
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
from mcp_hosts import MODERN, HttpHost, Json, StdioHost, ask
from mcp_measure import REQUESTS, ROUNDS, WARM, Subject, call_for, in_turns, ours
from mcp_site import (
    ENVIRONMENT,
    Daemon,
    agent_command,
    daemon,
    over_http,
    over_streams,
    peer_command,
)
from mcp_tools import chosen, is_own
from report import Report

PROXIED_BUDGET = 2.0


def child_of(pid: int) -> int:
    """The server that a daemon started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return int(text.split()[0])


def proxied(report: Report, folder: Path) -> None:
    """Calls that remit passes on, against the same calls without it."""
    with ours(folder) as (_, everything):  # a server that has names of ours is quarantined
        listed = [tool for tool in everything if is_own(tool)]
    (folder / "tools.json").write_text(json.dumps(listed), encoding="utf-8")
    called = call_for(chosen(listed, changes=False))
    with ExitStack() as stack:
        process, port = stack.enter_context(over_http("bare", folder))
        kept = {"trust": "on_first_use", "effects": {"*": "read"}, "start": "eager"}
        command, *arguments = peer_command("bare", folder, "stdio")
        behind = {
            "http": {"url": f"http://127.0.0.1:{port}/mcp", **kept},
            "stdio": {"command": command, "args": arguments, **kept},
        }
        for kind, entry in behind.items():
            inside = folder / kind
            one = stack.enter_context(daemon(inside, upstreams={"bench": entry}))
            one.run("upstream", "check", "bench")
            ends = _ends(stack, one, kind, folder, process.pid, port)
            _pass_on(report, kind, ends, called)
            _as_a_host(report, kind, one, folder, port, called)


def _ends(
    stack: ExitStack, one: Daemon, kind: str, folder: Path, pid: int, port: int
) -> tuple[Subject, Subject]:
    if kind == "http":
        through = Subject(HttpHost(one.port, MODERN, one.token), one.pid, pid)
        return through, Subject(HttpHost(port, MODERN), pid)
    direct = stack.enter_context(over_streams(peer_command("bare", folder, "stdio"), folder))
    front = stack.enter_context(over_streams(agent_command(one.home), folder))
    through = Subject(StdioHost(front, MODERN), front.pid, one.pid, child_of(one.pid))
    return through, Subject(StdioHost(direct, MODERN), direct.pid)


def _pass_on(report: Report, kind: str, ends: tuple[Subject, Subject], called: Json) -> None:
    through, direct = ends
    listed = {tool["name"] for tool in ask(through.host, "tools/list", {})["tools"]}
    name = called["name"] if called["name"] in listed else f"mcp__bench__{called['name']}"
    asked = {"remit": ("tools/call", {**called, "name": name}), "direct": ("tools/call", called)}
    in_turns({"remit": through, "direct": direct}, asked)
    cost, wait = through.best()
    alone, direct_wait = direct.best()
    note = f"{cost * 1e3:.2f} ms against {alone * 1e3:.2f}, all processes that serve"
    report.slower(f"CPU, call passed on, {kind}", "the server alone", cost / alone, note=note)
    note = f"{wait * 1e3:.2f} ms against {direct_wait * 1e3:.2f}, a host that does nothing itself"
    what = f"latency, call passed on, {kind}, raw"
    report.slower(what, "the server alone", wait / direct_wait, note=note)


def _as_a_host(
    report: Report, kind: str, one: Daemon, folder: Path, port: int, called: Json
) -> None:
    """The same as a program sees it that calls with the library's own client."""
    if kind == "http":
        through = _over_http(one.port, one.token)
        direct = _over_http(port)
    else:
        through = _over_streams(agent_command(one.home), folder)
        direct = _over_streams(peer_command("bare", folder, "stdio"), folder)
    wait, direct_wait = anyio.run(_waits, through, direct, called)
    note = f"{wait * 1e3:.2f} ms against {direct_wait * 1e3:.2f}, with the client of `mcp`"
    what = f"latency, call passed on, {kind}"
    report.slower(what, "the server alone", wait / direct_wait, at_most=PROXIED_BUDGET, note=note)


def _over_http(port: int, token: str = "") -> Callable[[], Any]:
    def make() -> Any:
        import httpx2  # noqa: PLC0415 - only this part has a client
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        headers = {"Authorization": f"Bearer {token}"} if token else {}
        client = httpx2.AsyncClient(headers=headers, timeout=30)
        return streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=client)

    return make


def _over_streams(command: list[str], folder: Path) -> Callable[[], Any]:
    def make() -> Any:
        from mcp import StdioServerParameters  # noqa: PLC0415 - only this part has a client

        first, *others = command
        return StdioServerParameters(command=first, args=others, env=ENVIRONMENT, cwd=folder)

    return make


async def _waits(
    through: Callable[[], Any], direct: Callable[[], Any], called: Json
) -> tuple[float, float]:
    from mcp import Client  # noqa: PLC0415 - only this part has a client

    found: tuple[list[float], list[float]] = ([], [])
    async with Client(through(), mode=MODERN) as one, Client(direct(), mode=MODERN) as other:
        for client in (one, other):
            listed = {tool.name for tool in (await client.list_tools()).tools}
            if called["name"] not in listed:
                raise RuntimeError(f"{called['name']} is not listed")
        for _ in range(ROUNDS):
            for client, waits in zip((one, other), found, strict=True):
                waits.append(await _median(client, called))
    return min(found[0]), min(found[1])


async def _median(client: Any, called: Json) -> float:
    waits = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        answer = await client.call_tool(called["name"], called["arguments"])
        waits.append(time.perf_counter() - began)
        if answer.is_error:
            raise RuntimeError(str(answer.content))
    return statistics.median(waits[WARM:])
