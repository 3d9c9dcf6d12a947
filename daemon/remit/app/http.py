"""The HTTP face of a daemon, with MCP under /mcp; imported only where the setting `http` is on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from remit.config.settings.table import Settings
from remit.faces.http.endpoints import probes_of
from remit.faces.http.face import serve
from remit.faces.http.server import HttpLimits, address_of, is_loopback
from remit.faces.mcp.admission import Admission
from remit.faces.mcp.endpoint import McpEndpoint
from remit.kernel.authority.revision import Authority
from remit.kernel.dispatch.context import Kernel
from remit.kernel.dispatch.dispatcher import Dispatcher

MCP_PATH = "/mcp"


@asynccontextmanager
async def serve_http(
    settings: Settings, kernel: Kernel, dispatcher: Dispatcher, *, connections: int
) -> AsyncGenerator[dict[str, str]]:
    """Serve HTTP while the block runs; gives the endpoints by the name of their protocol.

    Raises:
        SettingsError: the address cannot be served, or callers without a token would come from
            elsewhere.
    """
    admission = Admission(
        kernel.keyring,
        is_local=is_loopback(address_of(settings.http)[0]),
        origins=settings.http_origins,
        hosts=settings.http_hosts,
        anonymous=settings.mcp_anonymous,
    )
    endpoint = McpEndpoint(
        dispatcher,
        admission,
        in_flight=settings.max_in_flight,
        body_bytes=settings.http_body_limit,
    )
    limits = HttpLimits(
        body_bytes=settings.http_body_limit,
        in_flight=settings.max_in_flight,
        drain_seconds=settings.drain_timeout,
        connections=connections,
        streams=min(HttpLimits().streams, max(1, connections // 2)),
    )
    async with (
        endpoint.serving(),
        serve(
            dispatcher,
            kernel.keyring,
            probes_of(kernel),
            address=settings.http,
            origins=settings.http_origins,
            hosts=settings.http_hosts,
            limits=limits,
            mounts={MCP_PATH: endpoint},
            request_type=partial(request_type, kernel.authority),
        ) as face,
    ):
        with face.connected(kernel), endpoint.connected(kernel):
            yield {"http": face.endpoint, "mcp": f"{face.endpoint}{MCP_PATH}"}


def request_type(authority: Authority, event: str) -> type[msgspec.Struct] | None:
    """The request type of an event; None when it is not served."""
    handler = authority.current.table.by_event.get(event)
    return None if handler is None else handler.shape.request_type
