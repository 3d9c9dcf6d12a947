"""One message to many connected listeners: the CPU time that the sending side spends on each.

Part of `bus.py`. The listeners are a process of their own, so that only sending is counted; all
threads of the sender count, libzmq's too.
"""

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import zmq
from fanout_nats import PATIENCE, Cost, ListenersFailedError, nats_cost, nats_missing
from report import INSTALL, Report, use_checkout

use_checkout()

from remit.config.definitions.files import (  # noqa: E402
    read_files,
    starter_dir,
)
from remit.faces.zmq.face import serve  # noqa: E402
from remit.faces.zmq.limits import SocketLimits  # noqa: E402
from remit.kernel.authority.revision import Authority, HandlerTable  # noqa: E402
from remit.kernel.bus.delivery import Delivery  # noqa: E402
from remit.kernel.dispatch.call import Call  # noqa: E402
from remit.kernel.dispatch.registry import Registry  # noqa: E402
from remit.model.principal import Agent, AgentSpec, Principal  # noqa: E402
from remit_client.keys import new_key  # noqa: E402
from remit_client.wire import Answer  # noqa: E402

DELIVERIES = 40_000
FANS = (1, 10, 100)
ROUNDS = 3
EVENT = "message:publish"
EVENTS = (EVENT, "message:subscribe", "message:direct")
BODY = {"text": "x" * 200}
PUSH = {"event": EVENT, "data": {"channel": "team", "data": BODY}, "origin": "ann", "at": 0.0}


def make_authority(agents: list[str]) -> Authority:
    """The starter definitions, with agents that may talk."""
    registry = Registry()
    for event in EVENTS:
        registry.event_handler(event)(make_authority)  # nobody calls it
    folder = starter_dir()
    files = read_files(folder / "capabilities.yaml", folder / "compositions")
    authority = Authority(HandlerTable(registry.handlers()), lambda: files)
    for name in agents:
        authority.fleet.add(Agent(id=name, spec=AgentSpec(profile="communicator")))
    return authority


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

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self.count = 0

    def submit(self, call: Call) -> Answer:
        """Answer at once."""
        self._delivery.bus.subscribe(call.connection, channels=["team"])
        self.count += 1
        return Answer(call.request.id, ok=True)


@contextmanager
def listeners(endpoint: str, server_key: str, fan: int, each: int) -> Iterator[Callable[[], None]]:
    """Connections in a process of their own; what is yielded waits until they have read all."""
    program = str(Path(__file__).with_name("fanout_listener.py"))
    command = [sys.executable, "-P", program, endpoint, server_key, str(fan), str(each)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves

    def wait() -> None:
        if process.stdout is None or process.stdout.readline().strip() != "all read":
            message = "the listeners failed"
            raise RuntimeError(message)

    try:
        yield wait
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def raw_cost(endpoint: str, fan: int, each: int) -> float:
    """CPU seconds for each delivery of a ROUTER that pushes one ready body, with CURVE as we do."""
    server = new_key("server")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.set_hwm(0)
    socket.rcvtimeo = PATIENCE * 1000
    socket.curve_server = True
    socket.curve_secretkey = server.secret_key.encode()
    socket.bind(endpoint)
    body = msgspec.msgpack.encode({"seq": 1} | PUSH)
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
    """CPU seconds for each delivery of the real face and delivery."""
    server = new_key("server")
    delivery = Delivery(make_authority(["listener"]), time.time)
    door = SubscribeDoor(delivery)
    limits = SocketLimits(high_water=0, backlog=1 << 30, backlog_bytes=1 << 40, linger_ms=0)
    async with serve(
        door, Directory(), endpoint=endpoint, server_key=server.secret_key, limits=limits
    ) as face:
        delivery.post = face
        with listeners(endpoint, server.public_key, fan, each) as wait:
            with anyio.fail_after(PATIENCE):
                while door.count < fan:  # noqa: ASYNC110 - a counter has no event
                    await anyio.sleep(0.01)
            before = time.process_time()
            for _ in range(each):
                if delivery.publish_on("team", BODY, "ann") != fan:
                    message = "not everybody was told"
                    raise RuntimeError(message)
                await anyio.lowlevel.checkpoint()
            await anyio.to_thread.run_sync(wait)
            return (time.process_time() - before) / (fan * each)


def fan_rows(report: Report) -> None:
    """CPU for each delivery, against a bare ROUTER without rights and numbers, and against NATS."""
    missing = nats_missing()
    for fan in FANS:
        what = f"publish to {fan} connected"
        raw, ours, nats = measure(fan, with_nats=not missing)
        note = f"{ours * 1e6:.1f} us of CPU a delivery"
        report.slower(what, "raw ROUTER push, CURVE", ours / raw, note=note)
        if nats is None:
            reason = f"not installed, {missing}: {INSTALL}" if missing else "its listeners failed"
            report.skip(what, "NATS", reason)
            continue
        note = "no encryption there; a ratio under 1 means that remit takes less"
        report.slower(what, "nats-server and its nats-py sender", ours / nats.both, note=note)
        report.slower(what, "nats-server alone", ours / nats.server, note=note)


def measure(fan: int, *, with_nats: bool) -> tuple[float, float, Cost | None]:
    """The cheapest of a few rounds of each, taken in turns."""
    each = DELIVERIES // fan
    raw, ours, nats = [], [], []
    # As the daemon is run.
    options = {"use_uvloop": importlib.util.find_spec("uvloop") is not None}
    body = msgspec.msgpack.encode(PUSH)
    with tempfile.TemporaryDirectory(prefix="bus-") as name:
        folder = Path(name)
        for at in range(ROUNDS):
            raw.append(raw_cost(f"ipc://{folder}/raw{at}", fan, each))
            endpoint = f"ipc://{folder}/our{at}"
            ours.append(anyio.run(our_cost, endpoint, fan, each, backend_options=options))
            if with_nats:
                with suppress(ListenersFailedError):
                    nats.append(anyio.run(nats_cost, body, fan, each, backend_options=options))
    return min(raw), min(ours), min(nats, key=lambda cost: cost.both, default=None)
