"""An MCP host of a test: the library's own client, with the token of an agent."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from tests.acceptance.site import PATIENCE, Daemon
from tests.outside.conformance_site import mcp_url


def token_of(daemon: Daemon, name: str) -> str:
    with daemon.operator() as operator:
        return str(operator.call("key:token", {"name": name})["token"])


@asynccontextmanager
async def host(daemon: Daemon, name: str, **options: Any) -> AsyncGenerator[Client]:
    """A host that acts for the agent of that name; `options` are those of the client."""
    headers = {"Authorization": f"Bearer {token_of(daemon, name)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
        transport = streamable_http_client(mcp_url(daemon), http_client=http)
        async with Client(transport, **options) as client:
            yield client


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


class Ear:
    """Hears that the tools of a host changed, in either era; it is the host's `message_handler`."""

    def __init__(self) -> None:
        self._heard = anyio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._heard.set()

    @asynccontextmanager
    async def listening(self, client: Client) -> AsyncGenerator[Callable[[], Awaitable[Any]]]:
        """A way to wait for the news."""
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            yield self._heard.wait
            return
        async with client.listen(tools_list_changed=True) as news:
            yield news.__anext__
