"""Servers behind a URL, in both eras, and what else may answer there."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from tests.features.upstreams.client.clients import SERVERS, running

from remit.errors import TooLargeError, UnavailableError
from remit.features.upstreams.client.state import ClientLimits
from remit.model.upstream import Upstream

pytestmark = pytest.mark.anyio

SECRETS = {"MCP_TOKEN": "Bearer let-me-in-please"}
PATIENT = ClientLimits(first_pause=60, longest_pause=60)


class Site:
    """A web server of the test."""

    def __init__(self, process: Process, lines: BufferedByteReceiveStream, port: int) -> None:
        self.process = process
        self.lines = lines
        self.port = port


@asynccontextmanager
async def site(script: str, *args: str) -> AsyncGenerator[Site]:
    command = [sys.executable, str(SERVERS / f"{script}.py"), *args]
    async with await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=None) as process:
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(20):
            port = int(await lines.receive_until(b"\n", 100))
        try:
            yield Site(process, lines, port)
        finally:
            if process.returncode is None:
                process.kill()


def at(port: int, **more: float) -> Upstream:
    return Upstream(
        name="outside",
        url=f"http://127.0.0.1:{port}/mcp",
        secret_headers={"Authorization": "MCP_TOKEN"},
        **{"timeout": 10.0, "start_timeout": 10.0, **more},  # type: ignore[arg-type]
    )


ERAS = [
    pytest.param(("modern",), "2026-07-28", id="modern"),
    pytest.param(("modern", "json"), "2026-07-28", id="modern-json"),
    pytest.param(("legacy",), "2025-11-25", id="legacy"),
    pytest.param(("legacy", "json"), "2025-11-25", id="legacy-json"),
]


@pytest.mark.parametrize(("args", "protocol"), ERAS)
async def test_calls_lists_and_large_answers(args: tuple[str, ...], protocol: str) -> None:
    async with site("over_http", *args) as web, running(at(web.port), secrets=SECRETS) as one:
        listing = await one.client.refresh()
        assert listing.protocol == protocol
        assert [tool.name for tool in listing.tools] == ["whoami", "change", "large", "work"]
        assert await one.text("whoami") == "***"
        with pytest.raises(TooLargeError):
            await one.text("large")
        assert await one.text("work") == "work"
        assert one.client.health.restarts == 0


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_change_and_progress_are_told_in_both_eras(era: str) -> None:
    heard: list[tuple[float, float | None, str]] = []
    async with site("over_http", era) as web, running(at(web.port), secrets=SECRETS) as one:
        await one.client.refresh()
        await one.client.call("work", {}, progress=lambda *told: heard.append(told))
        assert heard == [(1.0, 2.0, "half")]
        await one.text("change")
        await one.listed(lambda listing: len(listing.tools) == 5)


async def test_a_wrong_token_is_told_as_the_reason() -> None:
    async with (
        site("over_http", "modern") as web,
        running(at(web.port), secrets={"MCP_TOKEN": "Bearer wrong-token"}, limits=PATIENT) as one,
    ):
        with pytest.raises(UnavailableError, match="HTTP 401") as caught:
            await one.client.call("whoami", {})
    assert "wrong-token" not in str(caught.value.details)


async def test_a_server_that_goes_away_and_comes_back() -> None:
    async with site("over_http", "modern") as web, running(at(web.port), secrets=SECRETS) as one:
        await one.text("whoami")
        web.process.kill()
        await web.process.wait()
        with anyio.fail_after(10), pytest.raises(UnavailableError):
            await one.client.call("whoami", {})
        await one.turned("failing")
        assert "Connect" in one.client.health.reason
        async with site("over_http", "modern", str(web.port)):
            await one.turned("ready")
            assert await one.text("work") == "work"


async def test_headers_do_not_follow_a_redirect_to_another_host() -> None:
    async with (
        site("faulty_http", "elsewhere") as other,
        site("faulty_http", "redirects", str(other.port)) as web,
        running(at(web.port), secrets=SECRETS, limits=PATIENT) as one,
    ):
        with pytest.raises(UnavailableError, match="not followed"):
            await one.client.call("any", {})
        with anyio.move_on_after(0.3):
            line = await other.lines.receive_until(b"\n", 1_000)
            pytest.fail(f"the other host was asked: {line!r}")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("unwilling", "HTTP 503"),
        ("web_page", "text/html"),
        ("silent", "did not start within 1 s"),
        ("bomb", "compressed"),
        ("endless", "more bytes than are taken"),
    ],
)
async def test_what_is_no_server_is_told_by_its_fault(fault: str, reason: str) -> None:
    limit = 1.0 if fault == "silent" else 20.0
    async with site("faulty_http", fault) as web:
        upstream = at(web.port, start_timeout=limit)
        async with running(upstream, secrets=SECRETS, limits=PATIENT) as one:
            with anyio.fail_after(30), pytest.raises(UnavailableError):
                await one.client.call("any", {})
            await one.turned("failing")
            assert reason in one.client.health.reason


async def test_a_port_where_nobody_listens() -> None:
    async with running(at(9), secrets=SECRETS, limits=PATIENT) as one:
        with anyio.fail_after(10), pytest.raises(UnavailableError, match="ConnectError"):
            await one.client.call("any", {})
