"""HTTP servers that are none, or answer oddly: `faulty_http.py FAULT [ARGUMENT]`; prints its port.

`elsewhere` prints each Authorization header that reaches it.
"""

import gzip
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULT = sys.argv[1]
BOMB = gzip.compress(b"[" * 50_000_000, 1) if FAULT == "bomb" else b""


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.reply(405)

    def do_DELETE(self) -> None:
        self.reply(405)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        getattr(self, FAULT)(body)

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def redirects(self, _: object) -> None:
        self.reply(307, location=f"http://127.0.0.1:{sys.argv[2]}/mcp")

    def elsewhere(self, _: object) -> None:
        say(f"got {self.headers.get('authorization')}")
        self.reply(500)

    def unwilling(self, _: object) -> None:
        self.reply(503)

    def web_page(self, _: object) -> None:
        self.reply(200, b"<html>", content_type="text/html")

    def silent(self, _: object) -> None:
        time.sleep(1_000)

    def bomb(self, _: object) -> None:
        body = BOMB
        self.reply(200, body, content_type="application/json", content_encoding="gzip")

    def endless(self, _: object) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        while True:
            self.wfile.write(b" " * 65_536)


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    say(str(server.server_port))
    server.serve_forever()
