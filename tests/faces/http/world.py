"""The real dispatcher behind a real HTTP server on a free port, and clients of it."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx
from anyio.abc import SocketStream
from tests.fakes import Desk, built_in_handlers, starter_files

from remit.app.http import request_type
from remit.faces.http.face import HttpFace, serve
from remit.faces.http.gateway import Probes
from remit.faces.http.server import HttpLimits

PATIENCE = 10.0


class World:
    """A served face; each client is a principal of its own with a token."""

    def __init__(self, desk: Desk, face: HttpFace, http: httpx.AsyncClient) -> None:
        self.desk = desk
        self.face = face
        self.http = http
        self.problems: list[str] = []
        self._keys = 0

    async def add(self, name: str, profile: str) -> None:
        """Register a client under a profile."""
        self._keys += 1
        data = {"name": name, "public_key": f"{self._keys:040d}", "profile": profile}
        await self.desk.ask("operator", "key:add", data)

    async def token(self, name: str = "operator", **asked: Any) -> str:
        """A new token of a principal."""
        answer = await self.desk.ask("operator", "key:token", {"name": name, **asked})
        return str(answer["token"])

    async def headers(self, name: str = "operator", **asked: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {await self.token(name, **asked)}"}

    async def call(self, who: dict[str, str], event: str, data: Any = None) -> httpx.Response:
        return await self.http.post(f"/v1/events/{event}", json=data or {}, headers=who)

    @asynccontextmanager
    async def raw(self) -> AsyncGenerator[SocketStream]:
        """A bare connection."""
        url = httpx.URL(self.face.endpoint)
        assert url.port is not None
        async with await anyio.connect_tcp(url.host, url.port) as stream:
            yield stream

    @asynccontextmanager
    async def listen(self, who: dict[str, str], query: str = "") -> AsyncGenerator["Ear"]:
        """An open stream of events."""
        async with self.http.stream("GET", f"/v1/stream{query}", headers=who) as response:
            assert response.status_code == 200, await response.aread()
            yield Ear(response)


class Ear:
    """Reads a stream event by event."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def event(self) -> tuple[str, Any]:
        """The next event: its name and its data."""
        name = ""
        with anyio.fail_after(PATIENCE):
            async for line in self._lines:
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    return name, json.loads(value)
        raise AssertionError("the stream ended")

    async def ends(self) -> None:
        """Wait for the end; an abrupt one is one too."""
        with anyio.fail_after(PATIENCE):
            try:
                async for _ in self._lines:
                    pass
            except (httpx.RemoteProtocolError, httpx.ReadError):
                pass


@asynccontextmanager
async def served(
    *, limits: HttpLimits | None = None, origins: tuple[str, ...] = (), desk: Desk | None = None
) -> AsyncGenerator[World]:
    """Serve a desk with the starter's definitions over HTTP."""
    desk = desk or Desk(built_in_handlers(), starter_files())
    problems: list[str] = []

    async def found() -> list[str]:
        return problems

    probes = Probes(found, lambda: {"requests": desk.counters.requests})
    async with serve(
        desk.dispatcher,
        desk.keyring,
        probes,
        address="127.0.0.1:0",
        origins=origins,
        limits=limits or HttpLimits(drain_seconds=1.0),
        request_type=partial(request_type, desk.authority),
    ) as face:
        timeout = httpx.Timeout(PATIENCE)
        async with httpx.AsyncClient(base_url=face.endpoint, timeout=timeout) as http:
            with face.connected(desk.kernel):
                world = World(desk, face, http)
                world.problems = problems
                yield world


async def everything(stream: SocketStream) -> bytes:
    """All that comes until the other side closes."""
    parts: list[bytes] = []
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                parts.append(await stream.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return b"".join(parts)
