"""What asks in `mcp.py`: hosts that speak MCP by hand, in both eras, over HTTP and streams.

They do next to nothing, so that what is measured is the server.
"""

import json
import os
import select
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Protocol

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = (LEGACY, MODERN)
PATIENCE = 30.0
_INFO = {"name": "bench", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _INFO,
}
_HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _INFO}

Json = dict[str, Any]


def cpu_of(pids: list[int]) -> float:
    """Seconds that all threads of some processes have used, to the nanosecond.

    /proc counts in steps of 10 ms, which would ask for rounds so long that the machine changes
    meanwhile; the clock of a process is what `clock_getcpuclockid` gives on Linux.
    """
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def memory_of(pid: int) -> float:
    """The resident megabytes of a process."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


class Host(Protocol):
    """Whoever asks."""

    def wake(self) -> None:
        """Begin to ask again after a while."""

    def prepared(self, method: str, params: Json) -> bytes:
        """A request, ready to send."""

    def exchange(self, request: bytes) -> bytes:
        """The message that answers it."""


def ask(host: Host, method: str, params: Json) -> Json:
    """The result of one request."""
    return result_of(host.exchange(host.prepared(method, params)))


def result_of(answer: bytes) -> Json:
    """What stands in an answer; one that is no success ends the benchmark."""
    text = answer.partition(b"data: ")[2] if answer.startswith(b"event:") else answer
    message: Json = json.loads(text)
    if "result" not in message or message["result"].get("isError"):
        raise RuntimeError(text.decode()[:2_000])
    result: Json = message["result"]
    return result


class HttpHost:
    """A host over streamable HTTP, on one connection."""

    def __init__(self, port: int, era: str, token: str = "") -> None:
        self._port = port
        self._socket = self._connected()
        self._era = era
        self._head = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
        ]
        if token:
            self._head.append(f"Authorization: Bearer {token}")
        if era == LEGACY:
            self.exchange(self.prepared("initialize", _HELLO))
            self._head.append(f"Mcp-Session-Id: {self._session}")
        self._head.append(f"MCP-Protocol-Version: {era}")
        if era == LEGACY:
            self.exchange(self._request({"method": "notifications/initialized"}, []))

    def prepared(self, method: str, params: Json) -> bytes:
        """A request, ready to send."""
        more: list[str] = []
        if self._era == MODERN:
            params = {**params, "_meta": _META}
            more = [f"Mcp-Method: {method}"]
            more += [f"Mcp-Name: {params['name']}"] if "name" in params else []
        return self._request({"id": 1, "method": method, "params": params}, more)

    def _request(self, message: Json, more: list[str]) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        lines = [*self._head, *more, f"Content-Length: {len(body)}"]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def exchange(self, request: bytes) -> bytes:
        """The message that answers it."""
        self._socket.sendall(request)
        head, _, body = self._until(b"", b"\r\n\r\n").partition(b"\r\n\r\n")
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            raise RuntimeError((head + body).decode())
        low = head.lower()
        if b"mcp-session-id:" in low:
            self._session = low.partition(b"mcp-session-id:")[2].split()[0].decode()
        if b"transfer-encoding: chunked" in low:
            return self._joined(self._until(body, b"\r\n0\r\n\r\n"))
        length = int(low.partition(b"content-length:")[2].split()[0])
        while len(body) < length:
            body += self._more()
        return body

    def _until(self, data: bytes, mark: bytes) -> bytes:
        while mark not in data:
            data += self._more()
        return data

    def _more(self) -> bytes:
        data = self._socket.recv(262_144)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data

    @staticmethod
    def _joined(data: bytes) -> bytes:
        whole = b""
        while True:
            size, _, data = data.partition(b"\r\n")
            length = int(size, 16)
            if length == 0:
                return whole
            whole, data = whole + data[:length], data[length + 2 :]

    def _connected(self) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    def wake(self) -> None:
        """Connect anew: servers hang up on those that are silent."""
        self._socket.close()
        self._socket = self._connected()


class StdioHost:
    """A host that started its server."""

    def __init__(self, process: "subprocess.Popen[bytes]", era: str) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - pipes
        self._writing, self._reading = process.stdin.fileno(), process.stdout.fileno()
        self._era = era
        self._rest = b""
        if era == LEGACY:
            self.exchange(self.prepared("initialize", _HELLO))
            self._send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def wake(self) -> None:
        """Nothing: the streams stay."""

    def prepared(self, method: str, params: Json) -> bytes:
        """A request, ready to send."""
        if self._era == MODERN:
            params = {**params, "_meta": _META}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json.dumps(message).encode() + b"\n"

    def exchange(self, request: bytes) -> bytes:
        """The message that answers it."""
        self._send(request)
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            if not select.select([self._reading], [], [], PATIENCE)[0]:
                raise TimeoutError("the server does not answer")
            parts.append(os.read(self._reading, 262_144))
            if not parts[-1]:
                raise ConnectionError("the server has ended")
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._writing, data) :]
