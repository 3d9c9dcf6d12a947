"""What `/v1/check` costs: `python tools/bench/http.py [--json FILE]`.

A real daemon, against bare uvicorn + Starlette and FastAPI that read and write the same JSON and
decide nothing. All three run in one run, in processes of their own, on the same server (uvicorn,
h11, uvloop). CPU is that of the server, read from /proc.
"""

import sys

sys.path.append(sys.path.pop(0))  # this file's name must not stand for the library's `http`

import importlib.util
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import free_port, running, until_it_listens
from report import INSTALL, ROOT, Report, arguments, use_checkout

use_checkout()

import remit_client.sync

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "daemon"), str(ROOT / "socket_client")])
}
TICKS = os.sysconf("SC_CLK_TCK")
REQUESTS = 6_000
ROUNDS = 3
CONNECTIONS = (1, 16)
EVENTS = {"1 event": 1, "20 events": 20}


class Server:
    """A process that serves `/v1/check`."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, token: str = "") -> None:
        self.process = process
        self.port = port
        self.token = token

    def cpu(self) -> float:
        """Seconds that all its threads have used."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def daemon(folder: Path) -> Iterator[Server]:
    """The real one."""
    command = [sys.executable, "-m", "remit", "serve", "--home", str(folder), "--json"]
    process = subprocess.Popen(  # noqa: S603 - ourselves
        [*command, "--http", "0", "--log-level", "error"], stdout=subprocess.PIPE, env=ENVIRONMENT
    )
    with running(process):
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        ready = json.loads(process.stdout.readline())
        with remit_client.sync.connect(home=folder) as operator:
            token = operator.call("key:token")["token"]
        yield Server(process, int(ready["endpoints"]["http"].rpartition(":")[2]), token)


@contextmanager
def peer(name: str) -> Iterator[Server]:
    """One of the others."""
    port = free_port()
    program = str(HERE / "http_peers.py")
    process = subprocess.Popen([sys.executable, "-P", program, name, str(port)])  # noqa: S603
    with running(process):
        until_it_listens(port)
        yield Server(process, port)


def request(server: Server, events: int) -> bytes:
    """One request, ready to send."""
    body = json.dumps({"events": ["state:get"] * events}).encode()
    head = [
        "POST /v1/check HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {server.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def answered(connection: socket.socket) -> bytes:
    """One whole answer."""
    data = connection.recv(65_536)
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    while len(body) < length:
        body += connection.recv(65_536)
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    return body


def measure(server: Server, connections: int, events: int) -> tuple[float, float]:
    """CPU seconds a request, and requests a second."""
    sent = request(server, events)
    opened = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(connections)]
    for one in opened:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    load(opened, sent, events, 200)
    cpu, began = server.cpu(), time.perf_counter()
    done = load(opened, sent, events, REQUESTS)
    seconds, used = time.perf_counter() - began, server.cpu() - cpu
    for one in opened:
        one.close()
    return used / done, done / seconds


def load(opened: list[socket.socket], sent: bytes, events: int, count: int) -> int:
    """Ask so often in all, on every connection at once; answers how often it was."""
    turns = max(1, count // len(opened))
    for _ in range(turns):
        for one in opened:
            one.sendall(sent)
        for one in opened:
            body = answered(one)
            if body.count(b'"allowed":true') != events:
                raise RuntimeError(body.decode())
    return turns * len(opened)


def best(server: Server, connections: int, events: int) -> tuple[float, float]:
    """The cheapest of a few rounds."""
    found = [measure(server, connections, events) for _ in range(ROUNDS)]
    return min(cpu for cpu, _ in found), max(rate for _, rate in found)


def main() -> int:
    """Measure everything against everything."""
    asked = arguments("what /v1/check costs over HTTP")
    report = Report("HTTP: POST /v1/check")
    names = {"starlette": "uvicorn + Starlette JSON echo", "fastapi": "uvicorn + FastAPI"}
    with tempfile.TemporaryDirectory(prefix="http-") as folder, daemon(Path(folder)) as ours:
        for label, events in EVENTS.items():
            for connections in CONNECTIONS:
                cost, rate = best(ours, connections, events)
                what = f"{label}, {connections} connections"
                for name, shown in names.items():
                    if importlib.util.find_spec(name) is None:
                        report.skip(what, shown, f"not installed: {INSTALL}")
                        continue
                    with peer(name) as other:
                        their_cost, their_rate = best(other, connections, events)
                    note = f"{cost * 1e6:.0f} us of CPU, {rate:,.0f}/s against {their_rate:,.0f}/s"
                    limit = {"starlette": 2.0, "fastapi": 1.5}[name]
                    ratio = cost / their_cost
                    report.slower(f"CPU a request, {what}", shown, ratio, at_most=limit, note=note)
    return report.finish(asked.json)


if __name__ == "__main__":
    sys.exit(main())
