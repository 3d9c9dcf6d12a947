"""A server behind a URL whose streams never end, or end at once; prints its port.

The tool `endless` is answered with a stream that says nothing for ever, `again` with one that asks
to be opened anew at once; `opened` tells how many streams were asked for.
"""

import json
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("endless", "again")]
opened = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # as we want it
            super().handle()

    def do_GET(self) -> None:
        global opened  # noqa: PLW0603
        opened += 1
        match sys.argv[1]:
            case "flood":
                self.endless()
            case "again":
                self.again()
            case _:
                self.answer(None, 405)

    def do_DELETE(self) -> None:
        self.answer(None, 405)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if request.get("method") == "tools/call":
            getattr(self, request["params"]["name"])(request)
        elif "id" not in request:
            self.answer(None, 202)
        elif request["method"] == "initialize":
            info = {"name": "x", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            self.result(request, {**result, "serverInfo": info})
        elif request["method"] == "tools/list":
            self.result(request, {"tools": TOOLS})
        else:
            error = {"code": -32601, "message": "no"}
            self.answer({"jsonrpc": "2.0", "id": request["id"], "error": error}, 404)

    def result(self, request: Any, result: Any) -> None:
        self.answer({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def answer(self, body: Any, status: int = 200) -> None:
        raw = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.send_header("mcp-session-id", "one")
        self.end_headers()
        self.wfile.write(raw)

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()

    def opened(self, request: Any) -> None:
        text = {"type": "text", "text": str(opened)}
        self.result(request, {"content": [text]})

    def endless(self, _: Any = None) -> None:
        self.stream()
        while True:
            self.wfile.write(b": nothing\n\n" * 1_000)

    def again(self, _: Any = None) -> None:
        self.stream()
        self.wfile.write(b"id: 1\nretry: 0\ndata:\n\n")


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
