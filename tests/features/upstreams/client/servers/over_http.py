"""A real server of the `mcp` library behind HTTP: `over_http.py modern|legacy [json] [PORT]`.

It prints its port. Only requests with the right bearer come in; in the old era the new greeting is
answered as servers do that do not know it.
"""

import socket
import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

LEGACY = sys.argv[1] == "legacy"
PORT = next((int(one) for one in sys.argv[2:] if one.isdecimal()), 0)
BUS = InMemorySubscriptionBus()
NAMES = ["whoami", "change", "large", "work"]
Scope = dict[str, Any]


async def list_tools(_: Any, __: Any) -> ListToolsResult:
    tools = [Tool(name=name, input_schema={"type": "object"}) for name in NAMES]
    return ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")


async def call_tool(ctx: Any, params: Any) -> CallToolResult:
    said = params.name
    if params.name == "whoami":
        said = ctx.request.headers["authorization"]
    if params.name == "large":
        said = "x" * 10_000_000
    if params.name == "work":
        await ctx.session.report_progress(1, 2, "half")
    if params.name == "change":
        NAMES.append(f"tool_{len(NAMES)}")
        await BUS.publish(ToolsListChanged())
        if LEGACY:
            await ctx.session.send_tool_list_changed()
    return CallToolResult(content=[TextContent(type="text", text=said)])


class Door:
    """Who comes in."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if headers.get("authorization") != "Bearer let-me-in-please":
            await _status(send, 401)
        elif LEGACY and headers.get("mcp-protocol-version") == "2026-07-28":
            await _status(send, 400)
        else:
            await self._inner(scope, receive, send)


async def _status(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


server = Server(
    "over-http",
    version="3",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=None if LEGACY else ListenHandler(BUS),
)
app = Door(server.streamable_http_app(json_response="json" in sys.argv))
with socket.socket() as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", PORT))
    listener.listen()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
