"""A web server on loopback that says exactly what a test wants it to, however wrong."""

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpcore
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSListener

from remit.features.web.fetch import Bounds, Fetcher
from remit.features.web.target import CheckedBackend
from remit.model.paths import HostRules

Play = Callable[[ByteStream], Awaitable[None]]
PUBLIC = "93.184.216.34"
"""An address that the check lets pass; no test ever connects to it."""


def page(body: bytes = b"hello", kind: str = "text/plain", status: int = 200, **more: str) -> bytes:
    """A well-made answer; names of further headers are written with `_`."""
    headers = {"content_type": kind, "content_length": str(len(body))} | more
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    return f"HTTP/1.1 {status} OK\r\n{''.join(lines)}\r\n".encode("latin-1") + body


def moved(location: str, status: int = 302) -> bytes:
    return page(b"", status=status, location=location)


class Server:
    """What is served, by path, and what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes | Play] = {}
        self.asked: list[bytes] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, stream: ByteStream) -> None:
        async with stream:
            try:
                head = await _head(stream)
                self.asked.append(head)
                answer = self.answers.get(head.split(b" ")[1].decode(), page(status=404))
                await (stream.send(answer) if isinstance(answer, bytes) else answer(stream))
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                return  # the other side had enough


async def _head(stream: ByteStream) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        head += await stream.receive()
    return head


@asynccontextmanager
async def serving(
    answers: Mapping[str, bytes | Play] | None = None, *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    server = Server()
    server.answers.update(answers or {})
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        server.port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        async with anyio.create_task_group() as tasks:
            secured = TLSListener(listener, tls, standard_compatible=False) if tls else listener
            tasks.start_soon(secured.serve, server.handle)
            yield server
            tasks.cancel_scope.cancel()


class Detour(httpcore.AsyncNetworkBackend):
    """Writes down which addresses are dialled, and connects to the server instead."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.dialled: list[str] = []

    async def connect_tcp(self, host: str, *args: Any, **more: Any) -> httpcore.AsyncNetworkStream:
        self.dialled.append(host)
        return await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", self.server.port)


class Names:
    """A resolver whose answers may change from one question to the next."""

    def __init__(self, **answers: Iterable[list[str]]) -> None:
        self.answers = {name.replace("_", "."): iter(found) for name, found in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return next(self.answers.get(host.removesuffix("."), iter([[PUBLIC]])))


class Outside:
    """A fetcher as the daemon has it, in a world where every public address is our server."""

    def __init__(self, server: Server, names: Names | None = None) -> None:
        self.names = names or Names()
        self.detour = Detour(server)

    def fetcher(self, *rules: HostRules, hosts: HostRules | None = None) -> Fetcher:
        return Fetcher(
            (hosts or HostRules(), *rules),
            backend=lambda: CheckedBackend(self.names, inner=self.detour),
        )


def nearby(**bounds: float) -> Fetcher:
    """A fetcher that may ask loopback, and is less patient."""
    return Fetcher(private=True, bounds=Bounds(**bounds))  # type: ignore[arg-type]
