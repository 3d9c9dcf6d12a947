"""The HTTP face of a daemon, where the configuration wants one."""

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from remit.app.web_mcp import MCP_PATH, mcp_endpoint, mcp_joined
from remit.config.settings_table import Settings
from remit.errors import RemitError
from remit.model.notice import Notice
from remit.runtime.courier import Post
from remit.runtime.dispatcher import Dispatcher
from remit.runtime.services import Services

if TYPE_CHECKING:
    from remit.faces.http import HttpFace, Stream

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
    services: Services,
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
    from remit.faces.http import (  # noqa: PLC0415 - Litestar costs 0.4 s: only when it is on
        Limits,
        Probes,
        Stream,
        serve,
    )

    endpoint = mcp_endpoint(settings, services, dispatcher)
    limits = Limits(
        body_bytes=settings.http_body_limit,
        in_flight=settings.max_in_flight,
        drain_seconds=settings.drain_timeout,
        connections=connections,
        streams=min(Limits().streams, max(1, connections // 2)),
    )
    probes = Probes(lambda: problems_of(services), lambda: numbers_of(services))
    async with (
        endpoint.serving(),
        serve(
            dispatcher,
            services.keyring,
            probes,
            address=settings.http,
            origins=settings.http_origins,
            hosts=settings.http_hosts,
            limits=limits,
            mounts={MCP_PATH: endpoint},
        ) as face,
    ):
        endpoints |= {"http": face.endpoint, "mcp": f"{face.endpoint}{MCP_PATH}"}
        with joined(services, face, Stream), mcp_joined(services, endpoint):
            yield


@contextmanager
def joined(services: Services, face: "HttpFace", stream_type: type) -> Generator[None]:
    """Let what is pushed reach the streams, and whoever is shut out lose them."""
    courier, keyring = services.courier, services.keyring
    sockets, shut_out = courier.post, keyring.on_revoke

    def lost(name: str) -> None:
        face.evict(name)
        shut_out(name)

    def gone(stream: "Stream") -> None:
        courier.drop(stream)
        services.mailbox.gone(stream.name)

    courier.post = face if sockets is None else Posts(sockets, face, stream_type)
    keyring.on_revoke = lost
    keyring.tokens.on_drop = face.token_dropped
    face.on_stream(arrived=lambda one: services.mailbox.arrived(one.name), gone=gone)
    try:
        yield
    finally:
        courier.post, keyring.on_revoke = sockets, shut_out


async def problems_of(services: Services) -> list[str]:
    """What keeps the daemon from serving as it should; no name is in there."""
    found = []
    if services.authority.is_stale:
        found.append("edited definitions do not compile; the last good ones are in force")
    if services.store.is_full:
        found.append("the disk is full; only denials and revocations are written")
    try:
        with anyio.fail_after(_STORE_SECONDS):
            await services.store.mail_count("")
    except (RemitError, TimeoutError):
        found.append("the store does not answer")
    return found


def numbers_of(services: Services) -> Mapping[str, float]:
    """Totals for Prometheus."""
    counters = services.counters
    found: dict[str, float] = {
        "agents": len(services.authority.fleet),
        "denied": counters.denied,
        "denied_repeats": services.auditor.denials.counted,
        "failed": counters.failed,
        "internal_errors": counters.internal_errors,
        "requests": counters.requests,
        "revision": services.authority.catalogue.revision,
        "disk_full": int(services.store.is_full),
        "stale": int(services.authority.is_stale),
        "timeouts": counters.timeouts,
        "uptime_seconds": services.clock() - counters.started_at,
    }
    bills = services.bills
    found |= {f"tokens_{kind}": sent for kind, sent in bills.sent.items()}
    found |= {"tokens_sent": bills.total.sent, "tokens_full_dump": bills.total.full_dump}
    found["turns"] = bills.total.turns
    if (traffic := services.traffic) is not None:
        found |= {
            "clients": traffic.clients,
            "crowded": traffic.crowded,
            "dropped": traffic.dropped,
            "silenced": traffic.silenced,
        }
    return found
