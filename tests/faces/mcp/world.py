"""The real dispatcher behind a real /mcp on a free port, and real MCP clients of it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ToolListChangedNotification
from tests.fakes import Desk, built_in_handlers, starter_files

from remit.app.http import MCP_PATH
from remit.faces.http.face import serve
from remit.faces.http.gateway import Probes
from remit.faces.http.server import HttpLimits
from remit.faces.mcp.admission import Admission
from remit.faces.mcp.endpoint import McpEndpoint
from remit.model.principal import Cause

PATIENCE = 10.0
ERAS = ("legacy", "2026-07-28")


class World:
    """A served /mcp; each client is a principal of its own with a token."""

    def __init__(self, desk: Desk, url: str, endpoint: McpEndpoint) -> None:
        self.desk = desk
        self.url = url
        self.endpoint = endpoint
        self._keys = 0

    async def add(self, name: str, profile: str) -> dict[str, str]:
        """Register an agent under a profile; answers the headers that are its own."""
        self._keys += 1
        data = {"name": name, "public_key": f"{self._keys:040d}", "profile": profile}
        await self.desk.ask("operator", "key:add", data)
        return await self.headers(name)

    async def headers(self, name: str, **asked: Any) -> dict[str, str]:
        """A new token of an agent."""
        answer = await self.desk.ask("operator", "key:token", {"name": name, **asked})
        return {"Authorization": f"Bearer {answer['token']}"}

    async def edit(self, name: str, text: str) -> None:
        """Put another text of a composition in force."""
        files = self.desk.files
        path = next((one for one in files.contents if one.endswith(f"/{name}.yaml")), "")
        path = path or f"compositions/{name}.yaml"
        contents = {**files.contents, path: text.encode()}
        compositions = sorted({*files.compositions, path})
        self.desk.files = msgspec.structs.replace(
            files, contents=contents, compositions=compositions
        )
        outcome = await self.desk.kernel.reloader.reload(Cause("files_edited"))
        assert not outcome.problems, outcome.problems

    @asynccontextmanager
    async def client(
        self, headers: Mapping[str, str], era: str, on_message: Any = None
    ) -> AsyncGenerator[Client]:
        """An MCP client."""
        timeout = httpx2.Timeout(PATIENCE)
        async with httpx2.AsyncClient(headers=dict(headers), timeout=timeout) as http:
            way = streamable_http_client(self.url, http_client=http)
            async with Client(way, mode=era, message_handler=on_message) as client:
                yield client

    @asynccontextmanager
    async def listening(
        self, headers: Mapping[str, str], era: str, name: str = "ann"
    ) -> AsyncGenerator[tuple[Client, "News"]]:
        """A client that hears of changed lists."""
        news = News()
        # In the later era the library shows what a stream tells to both.
        async with self.client(headers, era, news.take if era == "legacy" else None) as client:
            await client.list_tools()
            if era == "legacy":
                await self._stream_stands(name)
                yield client, news
                return
            async with (
                client.listen(tools_list_changed=True) as stream,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(news.follow, stream)
                yield client, news
                tasks.cancel_scope.cancel()

    async def _stream_stands(self, name: str) -> None:
        """The stream of a session is opened beside its first requests."""
        with anyio.fail_after(PATIENCE):
            while not self.endpoint.connections(name):  # noqa: ASYNC110 - the library signals nothing
                await anyio.sleep(0.005)


class News:
    """How often a client was told."""

    def __init__(self) -> None:
        self.count = 0
        self._told = anyio.Event()

    async def take(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._add()

    async def follow(self, stream: Any) -> None:
        async for _ in stream:
            self._add()

    def _add(self) -> None:
        self.count += 1
        self._told.set()

    async def wait(self) -> None:
        with anyio.fail_after(PATIENCE):
            await self._told.wait()
        self._told = anyio.Event()


@asynccontextmanager
async def served(
    desk: Desk | None = None,
    *,
    origins: tuple[str, ...] = (),
    anonymous: str = "",
    in_flight: int = 256,
    sessions_each: int = 1_000,
) -> AsyncGenerator[World]:
    """Serve a desk with the starter's definitions under /mcp."""
    desk = desk or Desk(built_in_handlers(), starter_files())
    admission = Admission(desk.keyring, is_local=True, origins=origins, anonymous=anonymous)
    endpoint = McpEndpoint(
        desk.dispatcher,
        admission,
        in_flight=in_flight,
        body_seconds=1.0,
        sessions_each=sessions_each,
    )

    async def fine() -> list[str]:
        return []

    async with (
        endpoint.serving(),
        serve(
            desk.dispatcher,
            desk.keyring,
            Probes(fine, dict),
            address="127.0.0.1:0",
            limits=HttpLimits(drain_seconds=1.0),
            mounts={MCP_PATH: endpoint},
        ) as face,
    ):
        with face.connected(desk.kernel), endpoint.connected(desk.kernel):
            yield World(desk, f"{face.endpoint}{MCP_PATH}", endpoint)
