"""Too few descriptors: `python tools/drills/descriptors.py [--seconds S] [--many N] [--json]`.

Under `ulimit -n` 64, 128 and 256 the daemon is flooded with half-open connections, on its socket
and over HTTP, while one agent opens thousands of connections of its own. All the while the operator
comes anew, again and again, and must be answered; so must an agent that was connected before. A
connection of the flood that is cut comes back at once.
"""

import resource
import select
import socket as sockets
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import zmq
from stage import Daemon, Stage, arguments, new_folder, report

import remit_client.sync
from remit_client.errors import RemitError
from remit_client.keys import Key, load_server_key, new_key

LIMITS = (64, 128, 256)
HALF_OPEN = 200
OUR_OWN = 600
"""Descriptors that the drill itself needs, besides those of the crowd."""
CATALOGUE = """\
version: 1
capabilities:
  base: {description: For everybody, event_patterns: [system:health], always_included: true}
"""
KNOCK_SECONDS = 0.02
PAUSE_SECONDS = 0.05


class Flood:
    """Connections that say nothing more, or nothing at all; those that are cut come back."""

    def __init__(self, connect: Callable[[], sockets.socket], first: bytes) -> None:
        self._connect = connect
        self._first = first
        self.opened = self.cut = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Flood":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        poller, held = select.poll(), dict[int, sockets.socket]()
        while not self._over.is_set():
            while len(held) < HALF_OPEN and (one := self._open()) is not None:
                held[one.fileno()] = one
                poller.register(one, select.POLLIN | select.POLLHUP)
            for number, _ in poller.poll(int(KNOCK_SECONDS * 1000)):
                if self._is_over(held[number]):
                    poller.unregister(number)
                    held.pop(number).close()
                    self.cut += 1
        for one in held.values():
            one.close()

    def _is_over(self, one: sockets.socket) -> bool:
        try:
            return not one.recv(4096)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _open(self) -> sockets.socket | None:
        one = None
        try:
            one = self._connect()
            if self._first:
                one.send(self._first)
        except OSError:
            if one is not None:
                one.close()
            return None  # its queue is full, which is what was wanted
        self.opened += 1
        return one


def knock_ipc(path: str) -> sockets.socket:
    """A connection to the socket, if there is room in its queue."""
    one = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    one.setblocking(False)  # noqa: FBT003 - the standard library's own
    try:
        one.connect(path)
    except OSError:
        one.close()
        raise
    return one


def knock_http(host: str, port: int) -> sockets.socket:
    """A connection over HTTP, or the way to one."""
    one = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    one.settimeout(1)
    try:
        one.connect((host, port))
    except OSError:
        one.close()
        raise
    one.setblocking(False)  # noqa: FBT003 - the same
    return one


class Crowd:
    """Very many connections with the key of one agent, which all ask something."""

    def __init__(self, endpoint: str, server: str, key: Key, many: int) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 64)
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.curve_serverkey = server.encode()
        self._socket.curve_publickey = key.public_key.encode()
        self._socket.curve_secretkey = key.secret_key.encode()
        self._socket.setsockopt(zmq.RECONNECT_IVL, 100)
        self._socket.setsockopt(zmq.LINGER, 0)
        for _ in range(many):
            self._socket.connect(endpoint)
        self.answered = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Crowd":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()
        self._context.term()

    def _run(self) -> None:
        body = msgspec.msgpack.encode({"id": 1, "event": "system:health"})
        while not self._over.is_set():
            try:
                self._socket.send_multipart([b"R1", b"Q", body], zmq.NOBLOCK)
            except zmq.Again:
                time.sleep(0.001)
            while self._socket.poll(0):
                self._socket.recv_multipart()
                self.answered += 1


class Drill:
    """What the operator met while everybody knocked."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {"asked": 0, "answered": 0, "old_agent_answered": 0}
        self.figures |= {"half_open": 0, "cut": 0, "crowd_answered": 0, "slowest_ms": 0}
        self.most: dict[int, int] = {}
        self.wrong: list[Any] = []

    def run(self, limit: int, seconds: float, many: int) -> None:
        """Flood one daemon that has so few descriptors."""
        with new_folder() as folder:
            stage = Stage(folder)
            stage.configure(http="127.0.0.1:0")
            stage.catalogue(CATALOGUE)
            stage.profile("worker", "capabilities: [base]\n")
            daemon = start(stage, limit)
            try:
                self._flood(stage, daemon, limit, seconds, many)
            except RemitError as error:
                self.wrong.append((limit, str(error)))
            finally:
                alive = daemon.process.poll() is None
                code, _ = daemon.terminate()
                if not alive or code != 0:
                    self.wrong.append((limit, f"ended with {code}", stage.said()))

    def _flood(self, stage: Stage, daemon: Daemon, limit: int, seconds: float, many: int) -> None:
        endpoint = daemon.ready["endpoints"]["zmq"]
        host, _, port = daemon.ready["endpoints"]["http"].removeprefix("http://").rpartition(":")
        keys = [new_key(name) for name in ("old", "crowd")]
        with remit_client.sync.connect(home=stage.home) as operator:
            for key in keys:
                data = {"name": key.name, "public_key": key.public_key, "profile": "worker"}
                operator.call("key:add", data)
        path = endpoint.removeprefix("ipc://")
        server = load_server_key(stage.home / "server.pub")
        with ExitStack() as stack:
            old = stack.enter_context(remit_client.sync.connect(home=stage.home, key=keys[0]))
            self._ask_old(old, limit)  # it has spoken, so its place is its own
            ipc = stack.enter_context(Flood(lambda: knock_ipc(path), b""))
            http = stack.enter_context(Flood(lambda: knock_http(host, int(port)), b"GET / HT"))
            crowd = stack.enter_context(Crowd(endpoint, server, keys[1], many))
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                self._ask(stage, limit)
                self._ask_old(old, limit)
                self._count(daemon, limit)
                time.sleep(PAUSE_SECONDS)  # libzmq closes beside us: those before must be gone
        figures = self.figures
        figures["half_open"] += ipc.opened + http.opened
        figures["cut"] += ipc.cut + http.cut
        figures["crowd_answered"] += crowd.answered

    def _ask(self, stage: Stage, limit: int) -> None:
        """The operator comes anew."""
        began = time.monotonic()
        self.figures["asked"] += 1
        try:
            with remit_client.sync.connect(home=stage.home) as operator:
                operator.call("system:health", timeout=10)
        except RemitError as error:
            self.wrong.append((limit, f"the operator: {error}"))
        else:
            self.figures["answered"] += 1
        slowest = max(self.figures["slowest_ms"], round(1000 * (time.monotonic() - began)))
        self.figures["slowest_ms"] = slowest

    def _ask_old(self, old: remit_client.sync.Client, limit: int) -> None:
        try:
            old.call("system:health", timeout=10)
        except RemitError as error:
            self.wrong.append((limit, f"who was there before: {error}"))
        else:
            self.figures["old_agent_answered"] += 1

    def _count(self, daemon: Daemon, limit: int) -> None:
        try:
            count = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
        except OSError:
            return  # it has ended, which is told elsewhere
        self.most[limit] = max(self.most.get(limit, 0), count)


def start(stage: Stage, limit: int) -> Daemon:
    """A daemon that inherits so few descriptors, and may not have more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = (
        "-c",
        f"import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit},) * 2);"
        "sys.argv[0] = 'remit'; runpy.run_module('remit', run_name='__main__')",
    )
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return stage.start(program)


def main() -> int:
    """Run the drill; answers the exit code."""
    asked = arguments(__doc__ or "", seconds=8.0, many=3000)
    drill = Drill()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = asked.many if hard == resource.RLIM_INFINITY else min(asked.many, hard - OUR_OWN)
    for limit in LIMITS:
        drill.run(limit, asked.seconds, many)
    figures = drill.figures | {"most_descriptors": drill.most}
    return report(figures, drill.wrong, as_json=asked.json)


if __name__ == "__main__":
    sys.exit(main())
