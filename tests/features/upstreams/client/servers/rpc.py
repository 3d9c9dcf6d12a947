"""The least of an MCP server, on raw JSON lines: it starts in 30 ms and can be broken anywhere."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

MODERN = "2026-07-28"
OBJECT = {"type": "object"}
Json = dict[str, Any]


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def mutter(line: str, stream: TextIO = sys.stderr) -> None:
    """A line beside the protocol."""
    stream.write(line + "\n")
    stream.flush()


def answer(request: Json, result: Json) -> None:
    say(id=request["id"], result=result)


def refuse(request: Json, code: int, message: str) -> None:
    say(id=request["id"], error={"code": code, "message": message})


def text(*texts: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": one} for one in texts], **more}


def tool(name: str, **more: Any) -> Json:
    return {"name": name, "description": f"Does {name}.", "inputSchema": OBJECT, **more}


def requests() -> Iterator[Json]:
    for line in sys.stdin:
        yield json.loads(line)


class Server:
    """Answers the handshake of one era, a list of tools in pages, and calls."""

    def __init__(
        self,
        tools: list[Json],
        on_call: Callable[[Json], None] | None = None,
        *,
        protocol: str = "2025-11-25",
        page: int = 1_000,
    ) -> None:
        self.tools = tools
        self.on_call = on_call or (lambda request: answer(request, text("done")))
        self.protocol = protocol
        self.page = page
        self.on_other: Callable[[Json], None] = lambda _: None
        self.subscription: Any = None

    def serve(self) -> None:
        for message in requests():
            self.handle(message)

    def handle(self, message: Json) -> None:
        match message.get("method"):
            case "server/discover" if self.protocol == MODERN:
                self.discover(message)
            case "initialize" if self.protocol != MODERN:
                self.initialize(message)
            case "tools/list":
                self.list(message)
            case "tools/call":
                self.on_call(message)
            case "subscriptions/listen" if self.protocol == MODERN:
                self.listen(message)
            case str() if "id" in message:
                refuse(message, -32601, "Method not found")
            case _:
                self.on_other(message)

    def initialize(self, request: Json) -> None:
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "raw", "version": "1.2"}
        answer(
            request,
            {
                "protocolVersion": self.protocol,
                "capabilities": capabilities,
                "serverInfo": info,
            },
        )

    def discover(self, request: Json) -> None:
        stamp = {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1.2"}}
        answer(
            request,
            {
                "supportedVersions": [MODERN],
                "capabilities": {"tools": {"listChanged": True}},
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": stamp,
            },
        )

    def list(self, request: Json) -> None:
        begin = int((request.get("params") or {}).get("cursor") or 0)
        end = begin + self.page
        result: Json = {"tools": self.tools[begin:end]}
        if end < len(self.tools):
            result["nextCursor"] = str(end)
        if self.protocol == MODERN:
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        answer(request, result)

    def listen(self, request: Json) -> None:
        self.subscription = request["id"]
        self.notify(
            "notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True}
        )

    def changed(self) -> None:
        self.notify("notifications/tools/list_changed")

    def notify(self, method: str, **params: Any) -> None:
        if self.subscription is not None:
            params["_meta"] = {"io.modelcontextprotocol/subscriptionId": self.subscription}
        say(method=method, params=params)
