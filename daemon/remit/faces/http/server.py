"""uvicorn inside this process: on a socket of ours, without its signals, and with deadlines.

uvicorn itself would wait for ever for the head of a request. h11 reads strictly, and never more of
a head than it is allowed to.

A web page can point a name of its own at this machine and have a browser ask it. The browser then
sends that name as `Host`, so a request under a name that nobody gave us is refused (`HostNames`).
"""

import asyncio  # noqa: TID251 - anyio has no way to serve a socket that was accepted already
import errno
import re
import socket as sockets
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import anyio
import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from remit.errors import SettingsError
from remit.faces.http.responses import PROBLEM_JSON, problem, problem_body
from remit.model.paths import HostRules

ABORT = "remit_abort"
"""The scope key of the function that cuts the connection."""

LOOPBACK = "127.0.0.1"
_TICK_SECONDS = 1.0
_POLL_SECONDS = 0.01
_GONE = frozenset({errno.EAGAIN, errno.ECONNABORTED, errno.EINTR})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]{1,255})(:[0-9]{1,5})?")


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the face; every wait for a client ends, and every queue towards one has an end."""

    body_bytes: int = 1 << 20
    bodies_bytes: int = 8 << 20
    """Of the requests of one caller that are being read or answered; one alone may be larger."""
    header_bytes: int = 16 << 10
    header_seconds: float = 10.0
    body_seconds: float = 15.0
    write_seconds: float = 20.0
    idle_seconds: int = 15
    connections: int = 1024
    quiet_seconds: float = 0.25
    """How long a connection may ask nothing when others wait for its place."""
    in_flight: int = 256
    """Requests of one caller that run at once."""
    streams: int = 16
    """Open streams of one caller."""
    backlog: int = 512
    """Events that wait for one stream."""
    backlog_bytes: int = 2 << 20
    heartbeat_seconds: float = 15.0
    drain_seconds: float = 4.0


class HttpStats(msgspec.Struct):
    """Plain counters; the metrics show every field."""

    requests: int = 0
    refused: int = 0
    """Answered before any event was called: no token, no such route, unreadable."""
    streams: int = 0
    """Streams that are open."""
    dropped: int = 0
    """Pushed events that streams missed because they were read too slowly."""
    cut: int = 0
    """Connections that were cut: too slow, or of somebody who may not be here any more."""


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `[::1]:port`, or a port alone, which is on loopback."""
    host, _, port = text.rpartition(":")
    return host.strip("[]") or LOOPBACK, int(port)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def bind(text: str) -> sockets.socket:
    """A socket that listens there; port 0 picks one.

    Raises:
        SettingsError: it cannot be listened on.
    """
    host, port = address_of(text)
    try:
        family, kind, proto, _, address = sockets.getaddrinfo(
            host, port, type=sockets.SOCK_STREAM, flags=sockets.AI_PASSIVE
        )[0]
        found = sockets.socket(family, kind, proto)
    except OSError as error:
        raise _not_served(text, error) from error
    try:
        found.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        found.setblocking(False)  # noqa: FBT003 - the standard library's own
        found.bind(address)
        found.listen(512)
    except OSError as error:
        found.close()
        raise _not_served(text, error) from error
    return found


def _not_served(text: str, error: OSError) -> SettingsError:
    message = f"http cannot be served at {text!r}: {error.strerror or error}"
    return SettingsError(message, hint="choose another address, as in 127.0.0.1:7421, or port 0")


def url_of(socket: sockets.socket) -> str:
    """Where a client finds what listens there."""
    host, port = socket.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HostNames:
    """The address that is listened on, this machine's own name, and what the operator named."""

    def __init__(self, bound: str, named: Iterable[str] = ()) -> None:
        self._bound = ip_address(bound.partition("%")[0])
        self._named = HostRules(allow_hosts=tuple(named))

    def allow(self, shown: Sequence[bytes]) -> bool:
        """Tell whether a request with these `Host` headers is meant for us."""
        found = _HOST.fullmatch(shown[0].decode("latin-1").lower()) if len(shown) == 1 else None
        if found is None:
            return False
        host = found[1].removesuffix(".")
        if self._named.allow(host):
            return True
        try:
            address = ip_address(host.strip("[]"))
        except ValueError:
            return host == "localhost" and self._is_here()
        return self._is_ours(address)

    def _is_here(self) -> bool:
        return self._bound.is_loopback or self._bound.is_unspecified

    def _is_ours(self, address: IPv4Address | IPv6Address) -> bool:
        """An address cannot be pointed elsewhere; whoever listens on all has many."""
        if self._bound.is_unspecified:
            return True
        return address == self._bound or (address.is_loopback and self._bound.is_loopback)


class HttpServer(uvicorn.Server):
    """Serves until it is told to stop; signals are the daemon's own affair."""

    def __init__(self, app: Any, *, limits: HttpLimits, stats: HttpStats) -> None:
        config = uvicorn.Config(
            app,
            http=partial(HttpConnection, limits=limits, stats=stats),  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=limits.idle_seconds,
            h11_max_incomplete_event_size=limits.header_bytes,
        )
        super().__init__(config)
        self._stopping = anyio.Event()
        self._limits = limits
        self._stats = stats
        self._listening: list[Any] = []

    def stop(self) -> None:
        """Take nothing new, and let what runs come to its end."""
        self.should_exit = True
        self._stopping.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: Any = None) -> None:
        """Take connections one by one: uvicorn would take all, and leave no descriptor."""
        await super().startup(sockets=[])
        self._listening = list(sockets or [])

    async def _accept(self, listening: sockets.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await anyio.wait_readable(listening)
            try:
                connection, _ = listening.accept()
            except OSError as error:
                # Who knocked is gone, or descriptors are short: both pass.
                await anyio.sleep(0 if error.errno in _GONE else _POLL_SECONDS)
                continue
            connection.setblocking(False)  # noqa: FBT003 - the standard library's own
            if not self._has_room():
                self._stats.cut += 1
                connection.close()
                continue
            with suppress(OSError):
                await loop.connect_accepted_socket(self._protocol, connection)

    def _has_room(self) -> bool:
        """Tell whether one more is taken; the one that has asked nothing for longest makes room."""
        connections: Any = self.server_state.connections
        if len(connections) < self._limits.connections:
            return True
        quiet = [one for one in connections if not one.is_serving()]
        oldest = min(quiet, key=lambda one: one.quiet_since, default=None)
        if oldest is None or time.monotonic() - oldest.quiet_since < self._limits.quiet_seconds:
            return False
        oldest.cut()
        return True

    def _protocol(self) -> Any:
        make: Any = self.config.http_protocol_class
        return make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def main_loop(self) -> None:
        """Wait to be stopped; the date in the answers is that of the last second."""
        async with anyio.create_task_group() as tasks:
            for listening in self._listening:
                tasks.start_soon(self._accept, listening)
            while not self.should_exit:
                await self.on_tick(0)
                with anyio.move_on_after(_TICK_SECONDS):
                    await self._stopping.wait()
            tasks.cancel_scope.cancel()

    async def shutdown(self, sockets: Any = None) -> None:
        """Take no more connections, and give those that are open their time."""
        for listening in [*self.servers, *(sockets or [])]:
            listening.close()
        state: Any = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        with anyio.move_on_after(self._limits.drain_seconds):
            while state.connections or state.tasks:  # noqa: ASYNC110 - uvicorn signals neither
                await anyio.sleep(_POLL_SECONDS)
        for task in list(state.tasks):
            task.cancel()
        for connection in list(state.connections):
            connection.transport.abort()


class HttpConnection(H11Protocol):
    """One connection, with deadlines: for the head of each request, and for reading the answer."""

    def __init__(self, *arguments: Any, limits: HttpLimits, stats: HttpStats, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limits = limits
        self._stats = stats
        self._deadline: Any = None
        self._reading: Any = None
        self.quiet_since = time.monotonic()
        inner: Any = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope[ABORT] = self.transport.abort
            await inner(scope, receive, send)

        self.app = app

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read on; the head of a request must be complete in time."""
        if self._deadline is None and not self.is_serving():
            self._await_head()
        super().data_received(data)
        if self.is_serving():
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for another request."""
        self.quiet_since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start to wait for a client that does not read; others notice nothing."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(self._limits.write_seconds, self.cut)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._stop_waiting()
        if self._reading is not None:
            self._reading.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the form of all our refusals."""
        self._stats.refused += 1
        self._stop_waiting()
        error = problem("bad_frame", msg)
        headers = [
            (b"content-type", PROBLEM_JSON.encode()),
            (b"connection", b"close"),
        ]
        parts: list[Any] = [
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=problem_body(error, "")),
            h11.EndOfMessage(),
        ]
        try:
            for part in parts:
                self.transport.write(self.conn.send(part) or b"")
        except h11.LocalProtocolError:  # an answer is on its way already
            self.transport.abort()
        self.transport.close()

    def is_serving(self) -> bool:
        """Tell whether a request is being answered."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(self._limits.header_seconds, self.cut)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def cut(self) -> None:
        """Close it at once."""
        self._stats.cut += 1
        self._deadline = None
        self.transport.abort()
