"""Floods of bytes: `python tools/drills/bytes.py [--connections N] [--mb M] [--seconds S]`.

One agent after the other tries to make the daemon hold as much as it can: names of a megabyte,
answers that nobody reads, calls that wait with large data, messages for listeners who do not
read, letters to one that is away; and connections that send heartbeats among requests and hang up
before these are read. The daemon runs under a limit of its address space. It must live, answer the
operator all the time, and never hold more than its queues say.
"""

import resource
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import zmq
from cast import add_client, connect
from stage import Daemon, Stage, arguments, new_folder, report

from remit_client import Client
from remit_client.keys import Key

MEGABYTE = 1 << 20
ROOM = 2048
"""Bytes of a message that are not the text in it."""
EACH = 300
"""Messages that each connection sends."""
HEARTBEAT_MS = 1
HANGUPS = 20
LETTER = 65_000
VALUE = 250_000
CATALOGUE = """\
version: 1
capabilities:
  base:
    description: For everybody
    event_patterns: [system:health, permission:check, message:direct]
    always_included: true
  work:
    description: State and talk
    event_patterns: [state:get, state:set, "message:*", agent:send_message, agent:runtime]
"""
PROFILE = "capabilities: [work]\n"
GATED = "capabilities: [work]\napproval_required: [agent:send_message]\n"


class Line:
    """Connections of one agent that send and never read."""

    def __init__(self, stage: Stage, key: Key, connections: int, *, restless: bool = False) -> None:
        self._made_of = (stage, key, connections)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        server = (stage.home / "server.pub").read_bytes().strip()
        endpoint = (stage.home / "endpoint").read_text(encoding="utf-8").strip()
        self._sockets = []
        for _ in range(connections):
            socket = self._context.socket(zmq.DEALER)
            socket.linger = 0
            socket.setsockopt(zmq.SNDHWM, 0)
            socket.setsockopt(zmq.RCVHWM, 0 if restless else 1)
            if restless:
                socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
                socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 60_000)
            socket.curve_serverkey = server
            socket.curve_publickey = key.public_key.encode()
            socket.curve_secretkey = key.secret_key.encode()
            socket.connect(endpoint)
            self._sockets.append(socket)

    def send(self, event: str, data: Any, times: int) -> None:
        """Ask the same again and again; each connection holds the bytes once."""
        for number in range(times):
            request = {"id": number, "event": event, "data": data}
            head = msgspec.msgpack.encode(request)
            frame = zmq.Frame(head)
            for socket in self._sockets:
                socket.send_multipart([b"R1", b"Q", frame], copy=False)

    def again(self) -> "Line":
        """Hang up on whatever was sent, and connect anew, with heartbeats."""
        self.close()
        return Line(*self._made_of, restless=True)

    def close(self) -> None:
        """Hang up."""
        self._context.destroy(linger=0)


def names(line: Line) -> None:
    """Names of a megabyte, which an answer would repeat."""
    line.send("permission:check", {"event": "a" * (MEGABYTE - ROOM)}, EACH)


def answers(line: Line) -> None:
    """Small questions with large answers."""
    line.send("state:get", {"key": "large"}, 10 * EACH)


def writes(line: Line) -> None:
    """Calls with large data that wait for the disk."""
    line.send("state:set", {"key": "a", "value": "x" * VALUE}, EACH)


def trees(line: Line) -> None:
    """Calls whose data are small on the wire and large in memory."""
    line.send("agent:send_message", {"agent_id": "away", "message": [{}] * 900_000}, EACH // 10)


def listeners(line: Line) -> None:
    """Listeners who do not read what is said to them."""
    line.send("message:subscribe", {"channels": ["c"]}, 1)
    line.send("message:publish", {"channel": "c", "data": "x" * LETTER}, EACH)


def letters(line: Line) -> None:
    """Letters to one that is away."""
    line.send("agent:send_message", {"agent_id": "away", "message": "x" * LETTER}, EACH)


def hangups(line: Line) -> None:
    """Connections that close while the daemon has not read what they sent."""
    for _ in range(HANGUPS):
        line = line.again()
        line.send("permission:check", {"event": "a:b"}, 10 * EACH)
        time.sleep(0.05)
    line.close()


FLOODS: dict[str, Callable[[Line], None]] = {
    one.__name__: one for one in (names, answers, writes, trees, listeners, letters, hangups)
}


def memory(daemon: Daemon, name: str) -> float:
    """A figure of the daemon's memory in MB, such as VmHWM, the most that it ever held."""
    text = Path(f"/proc/{daemon.process.pid}/status").read_text(encoding="ascii")
    return float(text.split(f"{name}:")[1].split()[0]) / 1024


class Drill:
    """What each flood made the daemon hold."""

    def __init__(self, stage: Stage, daemon: Daemon) -> None:
        self.stage = stage
        self.daemon = daemon
        self.problems: list[str] = []
        self.figures: dict[str, Any] = {}

    async def run(self, name: str, connections: int, seconds: float, most_mb: float) -> None:
        """Let one flood loose."""
        async with connect(self.stage) as operator:
            await operator.call("state:set", {"key": "large", "value": "x" * VALUE})
            await add_client(operator, "away", "worker")
            key = await add_client(operator, name, "gated" if name == "trees" else "worker")
            before = memory(self.daemon, "VmHWM")
            slowest = await self._flood(operator, FLOODS[name], key, connections, seconds)
            held = memory(self.daemon, "VmHWM") - before
            self.figures |= {f"{name}_mb": round(held), f"{name}_wait_s": round(slowest, 2)}
            if held > most_mb:
                self.problems.append(f"{name}: {held:.0f} MB were held")

    async def _flood(
        self, operator: Client, flood: Any, key: Key, connections: int, seconds: float
    ) -> float:
        """Let one flood run, and ask how the daemon is all the time; the longest wait."""
        line = Line(self.stage, key, connections)
        slowest, until = 0.0, time.monotonic() + seconds
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, flood, line)
                while time.monotonic() < until:
                    began = time.monotonic()
                    await operator.call("system:health", timeout=60)
                    slowest = max(slowest, time.monotonic() - began)
                    await anyio.sleep(0.02)
        finally:
            await anyio.to_thread.run_sync(line.close)
        return slowest


@contextmanager
def limited(megabytes: int) -> Generator[None]:
    """Processes that are started inside of the block may map so much."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def play(name: str, options: Any) -> tuple[dict[str, Any], list[str]]:
    """One flood against a daemon of its own; its figures and problems."""
    with new_folder() as folder:
        stage = Stage(folder)
        stage.configure()
        stage.catalogue(CATALOGUE)
        stage.profile("worker", PROFILE)
        stage.profile("gated", GATED)
        with limited(options.mb):
            daemon = stage.start()
        drill = Drill(stage, daemon)
        try:
            anyio.run(drill.run, name, options.connections, options.seconds, options.most)
            code, _ = daemon.terminate()
        except Exception as error:
            code = daemon.kill()
            drill.problems.append(f"{name}: {type(error).__name__}: {error}")
        if code:
            drill.problems.append(f"{name}: it ended with {code}: {stage.said()}")
        return drill.figures, drill.problems


def main() -> int:
    """Play the drill and print its figures."""
    options = arguments("floods of bytes", connections=16, mb=700, most=400.0, seconds=6.0, only="")
    figures: dict[str, Any] = {"connections": options.connections}
    problems: list[str] = []
    for name in [options.only] if options.only else FLOODS:
        found, wrong = play(name, options)
        figures |= found
        problems += wrong
    return report(figures, problems, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
