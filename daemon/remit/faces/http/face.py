"""The HTTP face: the same events over HTTP, for web services and browsers.

Every operation builds a request and calls the dispatcher; nothing is decided here. Identity is the
bearer token, looked up again at every request. A slow client is cut and never delays another.
"""

from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import structlog

from remit.faces.http.application import make_application
from remit.faces.http.gateway import Gateway, Probes
from remit.faces.http.openapi import RequestType
from remit.faces.http.server import HostNames, HttpLimits, HttpServer, bind, is_loopback, url_of
from remit.faces.http.streams import Stream
from remit.kernel.bus.delivery import Post
from remit.kernel.dispatch.call import Door, Guard
from remit.kernel.dispatch.context import Kernel
from remit.model.event import Notice
from remit.model.principal import Token

log = structlog.get_logger()


class HttpFace:
    """The daemon's HTTP side while it serves; `serve` makes one."""

    def __init__(self, endpoint: str, gateway: Gateway) -> None:
        self.endpoint = endpoint
        self.stats = gateway.stats
        self._gateway = gateway
        self._streams = gateway.streams

    def deliver(self, connection: Any, notice: Notice) -> bool:
        """Send a notice on one stream; False when it is gone or full: nobody gets it."""
        return self._streams.push(connection, notice)

    def tell(self, name: str, notice: Notice) -> int:
        """Send a notice on every stream of a principal; tell how many got it."""
        return sum(self._streams.push(one, notice) for one in self._streams.named(name))

    def evict(self, name: str) -> int:
        """Cut the streams of a revoked principal, and end its calls; tell how many were cut."""
        return self._gateway.evict(name)

    def token_dropped(self, token: Token) -> None:
        """Cut what hangs on a token that counts no longer."""
        self._streams.end_token(token.hash)

    @contextmanager
    def connected(self, kernel: Kernel) -> Generator[None]:
        """Let what is pushed reach the streams, and whoever is revoked lose them."""
        delivery, keyring = kernel.delivery, kernel.keyring
        sockets, revoke, drop = delivery.post, keyring.on_revoke, keyring.tokens.on_drop

        def on_revoke(name: str) -> None:
            self.evict(name)
            revoke(name)

        def on_gone(stream: Stream) -> None:
            delivery.drop(stream)
            kernel.departed(stream.name)

        delivery.post = self if sockets is None else _SocketsAndStreams(sockets, self)
        keyring.on_revoke, keyring.tokens.on_drop = on_revoke, self.token_dropped
        self._streams.on_arrival = lambda stream: kernel.arrived(stream.name)
        self._streams.on_gone = on_gone
        try:
            yield
        finally:
            delivery.post, keyring.on_revoke = sockets, revoke
            keyring.tokens.on_drop = drop


@asynccontextmanager
async def serve(  # noqa: PLR0913 - one argument a part
    door: Door,
    guard: Guard,
    probes: Probes,
    *,
    address: str,
    origins: Iterable[str] = (),
    hosts: Iterable[str] = (),
    limits: HttpLimits | None = None,
    mounts: Mapping[str, Any] | None = None,
    request_type: RequestType = lambda _event: None,
) -> AsyncGenerator[HttpFace]:
    """Serve `door` at `address` until the block ends; then drain.

    Args:
        door: decides and answers.
        guard: says who holds which token, at every request.
        probes: what is told without a token.
        address: `host:port`; port 0 picks one.
        origins: web pages that may read answers; none unless they are named.
        hosts: names by which it may be asked, besides its address and those of this machine.
        limits: what one client may cost.
        mounts: further ASGI applications by the path they are served under.
        request_type: looks up the request types of events, for the OpenAPI document.

    Raises:
        SettingsError: the address cannot be served.
    """
    limits = limits or HttpLimits()
    socket = bind(address)
    try:
        host = socket.getsockname()[0]
        if not is_loopback(host):
            log.warning("http_not_encrypted", address=address, hint="put a TLS proxy before it")
        gateway = Gateway(door, guard, probes, limits=limits, is_loopback=is_loopback(host))
        app = make_application(
            gateway,
            request_type=request_type,
            hosts=HostNames(host, hosts),
            origins=tuple(origins),
            mounts=mounts,
        )
        server = HttpServer(app, limits=limits, stats=gateway.stats)
        async with _running(server, socket):
            try:
                yield HttpFace(url_of(socket), gateway)
            finally:
                gateway.streams.end_all()
    finally:
        socket.close()


class _SocketsAndStreams:
    """Carries notices to both kinds of connections."""

    def __init__(self, sockets: Post, streams: HttpFace) -> None:
        self._sockets = sockets
        self._streams = streams

    def deliver(self, connection: Any, notice: Notice) -> bool:
        """Send a notice on one connection; False when nobody gets it."""
        post = self._streams if isinstance(connection, Stream) else self._sockets
        return post.deliver(connection, notice)

    def tell(self, name: str, notice: Notice) -> int:
        """Send a notice on every connection of a principal; tell how many got it."""
        return self._sockets.tell(name, notice) + self._streams.tell(name, notice)


@asynccontextmanager
async def _running(server: HttpServer, socket: Any) -> AsyncGenerator[None]:
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_serve, server, socket)
        try:
            yield
        except Exception as error:  # carried out by hand: the task group would wrap it
            failure = error
        finally:
            server.stop()
    if failure is not None:
        raise failure


async def _serve(server: HttpServer, socket: Any) -> None:
    # Shielded: it ends by `stop`, with its answers sent.
    with anyio.CancelScope(shield=True):
        await server.serve(sockets=[socket])
