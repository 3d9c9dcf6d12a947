"""The HTTP face of a daemon, where the configuration wants one."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from remit.config.settings.table import Settings
from remit.errors import RemitError, SettingsError
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority
from remit.kernel.bus.delivery import Post
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.kernel.dispatch.kernel import Kernel
from remit.model.event import Notice
from remit.model.principal import RESERVED, Bearer, Token

if TYPE_CHECKING:
    from remit.faces.http.face import HttpFace
    from remit.faces.http.streams import Stream
    from remit.faces.mcp.endpoint import McpEndpoint


# MCP in the HTTP face: its endpoint, and what it is told.


MCP_PATH = "/mcp"


def mcp_endpoint(settings: Settings, kernel: Kernel, dispatcher: Dispatcher) -> "McpEndpoint":
    """What is served under /mcp.

    Raises:
        SettingsError: callers without a token would come from elsewhere.
    """
    from remit.faces.http.server import address_of  # noqa: PLC0415 - only when HTTP is on
    from remit.faces.mcp.admission import Admission  # noqa: PLC0415 - the same
    from remit.faces.mcp.endpoint import McpEndpoint  # noqa: PLC0415 - the same

    is_local = _is_loopback(address_of(settings.http)[0])
    anonymous = settings.mcp_anonymous
    if anonymous and (not is_local or anonymous in RESERVED):
        message = f"mcp_anonymous = {anonymous!r} would let anybody in"
        hint = "serve http on 127.0.0.1, and name an agent of little power"
        raise SettingsError(message, hint=hint)
    admission = Admission(
        kernel.keyring,
        is_local=is_local,
        origins=settings.http_origins,
        hosts=settings.http_hosts,
        anonymous=_nobody(kernel.keyring, anonymous) if anonymous else None,
    )
    return McpEndpoint(
        dispatcher,
        admission,
        in_flight=settings.max_in_flight,
        body_bytes=settings.http_body_limit,
    )


def _nobody(keyring: KeyRing, name: str) -> Callable[[], Bearer | None]:
    def admit() -> Bearer | None:
        principal = keyring.principal(name)
        return None if principal is None else Bearer(principal, Token("", name, ""))

    return admit


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@contextmanager
def mcp_joined(kernel: Kernel, endpoint: "McpEndpoint") -> Generator[None]:
    """Let hosts hear of changed lists, and cut those of whoever is shut out."""
    courier, keyring = kernel.courier, kernel.keyring
    before, shut_out, dropped = courier.on_change, keyring.on_revoke, keyring.tokens.on_drop

    def lost(name: str) -> None:
        endpoint.evict(name)
        shut_out(name)

    def drop(token: Token) -> None:
        endpoint.drop_token(token.hash)
        dropped(token)

    courier.on_change, keyring.on_revoke, keyring.tokens.on_drop = endpoint.changed, lost, drop
    try:
        yield
    finally:
        courier.on_change, keyring.on_revoke = before, shut_out
        keyring.tokens.on_drop = dropped


_STORE_SECONDS = 2.0


class Posts:
    """The sockets and the streams as one post."""

    def __init__(self, sockets: Post, streams: Post, stream_type: type) -> None:
        self._sockets = sockets
        self._streams = streams
        self._stream_type = stream_type

    def deliver(self, connection: Any, notice: Notice) -> bool:
        """Send a notice on one connection; False when nobody gets it."""
        is_stream = isinstance(connection, self._stream_type)
        return (self._streams if is_stream else self._sockets).deliver(connection, notice)

    def tell(self, name: str, notice: Notice) -> int:
        """Send a notice on every connection of a principal; tell how many got it."""
        return self._sockets.tell(name, notice) + self._streams.tell(name, notice)


@asynccontextmanager
async def web(
    settings: Settings,
    kernel: Kernel,
    dispatcher: Dispatcher,
    endpoints: dict[str, str],
    *,
    connections: int,
) -> AsyncGenerator[None]:
    """Serve HTTP while the block runs, if that is wanted; `endpoints` is told where.

    Raises:
        SettingsError: the address cannot be served.
    """
    if not settings.http:
        yield
        return
    from remit.faces.http.face import serve  # noqa: PLC0415 - uvicorn and Starlette: only when it is on
    from remit.faces.http.gateway import Probes  # noqa: PLC0415 - the same
    from remit.faces.http.limits import HttpLimits  # noqa: PLC0415 - the same
    from remit.faces.http.streams import Stream  # noqa: PLC0415 - the same

    endpoint = mcp_endpoint(settings, kernel, dispatcher)
    limits = HttpLimits(
        body_bytes=settings.http_body_limit,
        in_flight=settings.max_in_flight,
        drain_seconds=settings.drain_timeout,
        connections=connections,
        streams=min(HttpLimits().streams, max(1, connections // 2)),
    )
    probes = Probes(lambda: problems_of(kernel), lambda: numbers_of(kernel))
    async with (
        endpoint.serving(),
        serve(
            dispatcher,
            kernel.keyring,
            probes,
            address=settings.http,
            origins=settings.http_origins,
            hosts=settings.http_hosts,
            limits=limits,
            mounts={MCP_PATH: endpoint},
            request_type=partial(request_type, kernel.authority),
        ) as face,
    ):
        endpoints |= {"http": face.endpoint, "mcp": f"{face.endpoint}{MCP_PATH}"}
        with joined(kernel, face, Stream), mcp_joined(kernel, endpoint):
            yield


def request_type(authority: Authority, event: str) -> type[msgspec.Struct] | None:
    """The request type of an event; None when it is not served."""
    handler = authority.current.table.by_event.get(event)
    return None if handler is None else handler.shape.request_type


@contextmanager
def joined(kernel: Kernel, face: "HttpFace", stream_type: type) -> Generator[None]:
    """Let what is pushed reach the streams, and whoever is shut out lose them."""
    courier, keyring = kernel.courier, kernel.keyring
    sockets, shut_out = courier.post, keyring.on_revoke

    def lost(name: str) -> None:
        face.evict(name)
        shut_out(name)

    def gone(stream: "Stream") -> None:
        courier.drop(stream)
        kernel.departed(stream.name)

    courier.post = face if sockets is None else Posts(sockets, face, stream_type)
    keyring.on_revoke = lost
    keyring.tokens.on_drop = face.token_dropped
    face.on_stream(arrived=lambda one: kernel.arrived(one.name), gone=gone)
    try:
        yield
    finally:
        courier.post, keyring.on_revoke = sockets, shut_out


async def problems_of(kernel: Kernel) -> list[str]:
    """What keeps the daemon from serving as it should; no name is in there."""
    found = []
    if kernel.authority.is_stale:
        found.append("edited definitions do not compile; the last good ones are in force")
    if kernel.store.is_full:
        found.append("the disk is full; only denials and revocations are written")
    try:
        with anyio.fail_after(_STORE_SECONDS):
            await kernel.store.mail_count("")
    except (RemitError, TimeoutError):
        found.append("the store does not answer")
    return found


def numbers_of(kernel: Kernel) -> Mapping[str, float]:
    """Totals for Prometheus."""
    counters = kernel.counters
    found: dict[str, float] = {
        "agents": len(kernel.authority.fleet),
        "denied": counters.denied,
        "denied_repeats": kernel.auditor.denials.counted,
        "failed": counters.failed,
        "internal_errors": counters.internal_errors,
        "requests": counters.requests,
        "revision": kernel.authority.catalogue.revision,
        "disk_full": int(kernel.store.is_full),
        "stale": int(kernel.authority.is_stale),
        "timeouts": counters.timeouts,
        "uptime_seconds": kernel.clock() - counters.started_at,
    }
    bills = kernel.bills
    found |= {f"tokens_{kind}": sent for kind, sent in bills.sent.items()}
    found |= {"tokens_sent": bills.total.sent, "tokens_full_dump": bills.total.full_dump}
    found["turns"] = bills.total.turns
    if (traffic := kernel.traffic) is not None:
        found |= {
            "clients": traffic.clients,
            "crowded": traffic.crowded,
            "dropped": traffic.dropped,
            "silenced": traffic.silenced,
        }
    return found
