"""The bus against other ways to tell many of one event.

`python tools/bench/bus.py [--json FILE]`. In process: one emit among 200 subscriptions. Over real
sockets: the CPU time of the sender for each delivery; the listeners are a process of their own.
"""

# ruff: noqa: E402, I001 - `sys.path` is put right before anything else is imported
import sys

sys.path.append(sys.path.pop(0))  # a neighbour's name must not stand for the library's `socket`

import importlib.metadata
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import zmq

from report import Report, arguments, shortest, use_checkout

use_checkout()

from remit.config.files import read_files
from remit.config.starter import starter_dir
from remit.faces.zmq import Limits, serve
from remit.model.agent import Agent, AgentSpec
from remit.model.event import EventSpec
from remit.model.names import parse_event_name
from remit.model.notice import Notice
from remit.model.patterns import EventPattern
from remit.model.principal import Principal
from remit.runtime.authority import Authority
from remit.runtime.call import Call
from remit.runtime.courier import Courier
from remit_client.keys import new_key
from remit_client.wire import Answer

SUBSCRIPTIONS = 200
NAMESPACES = 20
EMITS = 20_000
DELIVERIES = 40_000
FANS = (1, 10, 100)
EVENT = "message:publish"
BODY = {"text": "x" * 200}
EMIT = f"bus emit, {SUBSCRIPTIONS} subscriptions, {SUBSCRIPTIONS // NAMESPACES} hear"
PUBLISH = "courier.publish, live grant checked for each"
EVENTS = (EVENT, "message:subscribe", "message:direct")


class Hearer:
    """A subscriber that does as little as one can; hashed by identity, as a connection is."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def hear(self, _notice: Notice) -> None:
        """Take a notice."""
        self.count += 1


class Post:
    """A face without a socket."""

    def deliver(self, connection: Hearer, notice: Notice) -> bool:
        """Hand it over."""
        connection.hear(notice)
        return True

    def tell(self, name: str, notice: Notice) -> int:
        """Nobody is told alone here."""
        raise NotImplementedError(name, notice)


def make_authority(agents: list[str]) -> Authority:
    """The starter definitions, with agents that may talk."""
    specs = [EventSpec(name=parse_event_name(event)) for event in EVENTS]
    folder = starter_dir()
    files = read_files(folder / "capabilities.yaml", folder / "compositions")
    authority = Authority(specs, lambda: files)
    for name in agents:
        authority.fleet.add(Agent(id=name, spec=AgentSpec(profile="communicator")))
    return authority


# ---- in process ----


def emit_rows(report: Report) -> None:
    """One event that ten of 200 subscriptions cover, told to all ten."""
    courier, told = crowd()
    bus, notice = courier.bus, Notice(EVENT, BODY, "ann", 0.0)
    cache = {EVENT: tuple(told)}

    def bare() -> None:
        for hearer in cache[EVENT]:
            hearer.hear(notice)

    def ours() -> None:
        for hearer in bus.hearers(EVENT):
            hearer.hear(notice)

    def checked() -> None:
        courier.publish(EVENT, BODY, "ann")

    floor, matched, delivered = (seconds(run, told) for run in (bare, ours, checked))
    report.slower(EMIT, "bare match cache", matched / floor, at_most=2)
    report.slower(PUBLISH, "bare match cache", delivered / floor)
    for name, make in (("pyee", pyee_emit), ("blinker", blinker_emit)):
        try:
            other = seconds(make(told, notice), told)
        except ImportError as error:
            report.skip(EMIT, name, f"not installed: {error}")
            continue
        against = f"{name} {importlib.metadata.version(name)}"
        asked = 2.5 if name == "pyee" else None
        report.faster(EMIT, against, other / matched, at_least=asked)
        report.faster(PUBLISH, against, other / delivered)


def crowd() -> tuple[Courier, list[Hearer]]:
    """A courier with its subscribers, and those among them that the event is for."""
    hearers = [Hearer(f"agent{at}") for at in range(SUBSCRIPTIONS)]
    texts = ["message:*", *(f"area{at}:*" for at in range(1, NAMESPACES))]
    courier = Courier(make_authority([hearer.name for hearer in hearers]), time.time)
    courier.post = Post()
    for at, hearer in enumerate(hearers):
        courier.bus.subscribe(hearer, patterns=[EventPattern.parse(texts[at % NAMESPACES])])
    return courier, hearers[::NAMESPACES]


def seconds(emit: Callable[[], Any], told: list[Hearer]) -> float:
    """The seconds of one emit that must reach everybody it is for."""

    def loop() -> None:
        for _ in range(EMITS):
            emit()

    before = [hearer.count for hearer in told]
    emit()
    if [hearer.count for hearer in told] != [count + 1 for count in before]:
        message = f"{emit} does not reach everybody"
        raise RuntimeError(message)
    return shortest(loop) / EMITS


def pyee_emit(told: list[Hearer], notice: Notice) -> Callable[[], Any]:
    """The same with pyee; it has no patterns, so each listener stands under the event itself."""
    from pyee import EventEmitter  # noqa: PLC0415 - may not be installed

    emitter = EventEmitter()
    for hearer in told:
        emitter.add_listener(EVENT, hearer.hear)
    return lambda: emitter.emit(EVENT, notice)


def blinker_emit(told: list[Hearer], notice: Notice) -> Callable[[], Any]:
    """The same with blinker, one signal for the event."""
    from blinker import Signal  # noqa: PLC0415 - may not be installed

    signal = Signal(EVENT)
    for hearer in told:
        signal.connect(hearer.hear)
    return lambda: signal.send(notice)


# ---- over sockets ----


class Directory:
    """One client that is everybody."""

    def name_of_key(self, _public_key: str) -> str:
        """Always the same."""
        return "listener"

    def principal(self, name: str) -> Principal:
        """Always there."""
        return Principal(name)


class SubscribeDoor:
    """Subscribes whoever asks for anything."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self.count = 0

    def submit(self, call: Call) -> Answer:
        """Answer at once."""
        self._courier.bus.subscribe(call.connection, channels=["team"])
        self.count += 1
        return Answer(call.request.id, ok=True)


@contextmanager
def listeners(endpoint: str, server_key: str, fan: int, each: int) -> Iterator[Callable[[], None]]:
    """Connections in a process of their own; what is yielded waits until they have read all."""
    task = json.dumps({"endpoint": endpoint, "key": server_key, "fan": fan, "each": each})
    command = [sys.executable, __file__, "--listen", task]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
    try:
        yield lambda: _expect(process, "all read")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _expect(process: "subprocess.Popen[str]", line: str) -> None:
    if process.stdout is None or process.stdout.readline().strip() != line:
        message = "the listeners failed"
        raise RuntimeError(message)


def listen(task: dict[str, Any]) -> None:
    """Connect, say hello, and count; runs in a process of its own."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    key, poller, left = new_key("listener"), zmq.Poller(), task["fan"] * task["each"]
    for _ in range(task["fan"]):
        socket = context.socket(zmq.DEALER)
        socket.set_hwm(0)
        socket.curve_serverkey = task["key"].encode()
        socket.curve_publickey, socket.curve_secretkey = (
            key.public_key.encode(), key.secret_key.encode(),
        )  # fmt: skip
        socket.connect(task["endpoint"])
        hello = msgspec.msgpack.encode({"id": 1, "event": "message:subscribe"})
        socket.send_multipart([b"R1", b"Q", hello])
        poller.register(socket, zmq.POLLIN)
    while left:
        for socket, _ in poller.poll():
            while socket.get(zmq.EVENTS) & zmq.POLLIN:
                left -= socket.recv_multipart()[1] == b"E"
    print("all read", flush=True)
    context.destroy(linger=0)


def raw_cost(endpoint: str, fan: int, each: int) -> float:
    """CPU seconds for each delivery of a ROUTER that pushes one ready body, with CURVE as we do."""
    server = new_key("server")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.set_hwm(0)
    socket.curve_server = True
    socket.curve_secretkey = server.secret_key.encode()
    socket.bind(endpoint)
    push = {"seq": 1, "event": EVENT, "data": {"channel": "team", "data": BODY}}
    body = msgspec.msgpack.encode(push | {"origin": "ann", "at": 0.0})
    with listeners(endpoint, server.public_key, fan, each) as wait:
        names = [socket.recv_multipart()[0] for _ in range(fan)]
        before = time.process_time()
        for _ in range(each):
            for name in names:
                socket.send_multipart([name, b"R1", b"E", body])
        wait()
        used = time.process_time() - before
    context.destroy(linger=0)
    return used / (fan * each)


async def our_cost(endpoint: str, fan: int, each: int) -> float:
    """CPU seconds for each delivery of the real face and courier."""
    server = new_key("server")
    courier = Courier(make_authority(["listener"]), time.time)
    door = SubscribeDoor(courier)
    limits = Limits(high_water=0, backlog=1 << 30, backlog_bytes=1 << 40, linger_ms=0)
    async with serve(
        door, Directory(), endpoint=endpoint, server_key=server.secret_key, limits=limits
    ) as face:
        courier.post = face
        with listeners(endpoint, server.public_key, fan, each) as wait:
            while door.count < fan:  # noqa: ASYNC110 - a counter has no event
                await anyio.sleep(0.01)
            before = time.process_time()
            for _ in range(each):
                if courier.publish_on("team", BODY, "ann") != fan:
                    message = "not everybody was told"
                    raise RuntimeError(message)
                await anyio.lowlevel.checkpoint()
            await anyio.to_thread.run_sync(wait)
            return (time.process_time() - before) / (fan * each)


def fan_rows(report: Report, folder: Path) -> None:
    """Sender CPU for each delivery, against a bare ROUTER that knows no rights and no numbers."""
    for fan in FANS:
        each = DELIVERIES // fan
        raw, ours = [], []
        for at in range(3):
            raw.append(raw_cost(f"ipc://{folder}/raw{fan}.{at}", fan, each))
            endpoint = f"ipc://{folder}/our{fan}.{at}"
            ours.append(anyio.run(our_cost, endpoint, fan, each))
        note = f"{min(ours) * 1e6:.1f} us a delivery, all threads"
        what = f"publish to {fan} connected"
        report.slower(what, "raw ROUTER push, CURVE", min(ours) / min(raw), note=note)


def main() -> int:
    """Measure and report."""
    options = arguments("Benchmark of the bus.")
    report = Report(f"bus, {os.cpu_count()} CPUs")
    emit_rows(report)
    with tempfile.TemporaryDirectory(prefix="bus-") as folder:
        fan_rows(report, Path(folder))
    return report.finish(options.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--listen"]:
        listen(json.loads(sys.argv[2]))
    else:
        sys.exit(main())
