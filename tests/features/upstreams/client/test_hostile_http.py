"""Servers behind a URL that want to keep us busy."""

import anyio
import pytest
from tests.features.upstreams.client.clients import running
from tests.features.upstreams.client.test_http import SECRETS, at, site

from remit.errors import RemitError
from remit.features.upstreams.client.endpoint import BoundedTransport, http_client

pytestmark = pytest.mark.anyio

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "endless"}}


async def read(url: str, guard: BoundedTransport, method: str = "POST", **more: float) -> int:
    """Bytes of a stream until it ends, or until it was read for some seconds."""
    size = 0
    async with http_client(guard, {}) as client, client.stream(method, url, json=CALL) as response:
        with anyio.move_on_after(more.get("seconds", 20)) as waited:
            async for piece in response.aiter_raw():
                size += len(piece)
        assert waited.cancelled_caught == ("seconds" in more)
    return size


async def test_a_stream_of_an_answer_ends_when_nobody_can_wait_for_it_any_more() -> None:
    async with site("hostile_http", "silent") as web:
        guard = BoundedTransport(longest=1_000, patience=0.3, on_broken=lambda _: None)
        assert await read(f"http://127.0.0.1:{web.port}/mcp", guard)


async def test_a_stream_of_news_is_not_read_faster_than_news_come() -> None:
    async with site("hostile_http", "flood") as web:
        guard = BoundedTransport(longest=1_000, patience=60, on_broken=lambda _: None)
        size = await read(f"http://127.0.0.1:{web.port}/mcp", guard, "GET", seconds=0.7)
    assert 0 < size < 2_000_000


async def test_streams_that_end_at_once_are_not_opened_again_at_once() -> None:
    async with (
        site("hostile_http", "again") as web,
        running(at(web.port, timeout=1.5), secrets=SECRETS) as one,
    ):
        with pytest.raises(RemitError, match="did not answer"):
            await one.client.call("again", {})
        assert int(await one.text("opened")) < 20
