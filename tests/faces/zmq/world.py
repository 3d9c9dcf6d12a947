"""A served socket with a small door behind it, for tests of the face and of the clients.

The door keeps the `Door` contract; its events are the ones that tests need, not the daemon's.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import zmq

from remit.faces.zmq.face import SocketFace, serve
from remit.faces.zmq.limits import SocketLimits
from remit.kernel.dispatch.call import Call, Job
from remit.model.principal import Principal
from remit_client.keys import Key, new_key
from remit_client.wire import Answer, Failure, Progress


class People:
    """A directory that can be changed while the face is up."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._principals: dict[str, Principal] = {}

    def register(self, key: Key) -> Key:
        self._names[key.public_key] = key.name
        self._principals[key.name] = Principal(key.name)
        return key

    def revoke(self, name: str) -> None:
        self._names = {key: who for key, who in self._names.items() if who != name}
        self._principals.pop(name, None)

    def name_of_key(self, public_key: str) -> str | None:
        return self._names.get(public_key)

    def principal(self, name: str) -> Principal | None:
        return self._principals.get(name)


class _Job:
    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run


class EchoDoor:
    """Answers at once, later, never, too much, or not at all."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.held = {"test:wait", "test:steps", "test:fail"}
        self.running: dict[str, int] = {}
        self.cancelled: list[str] = []
        self.seen: list[str] = []

    def submit(self, call: Call) -> Answer | Job:
        request = call.request
        self.seen.append(request.event)
        if request.event == "test:crash":
            raise RuntimeError("a door that breaks its promise")
        if request.event in self.held:
            return _Job(lambda: self._later(call))
        if request.event == "test:denied":
            failure = Failure("denied", "you may not", "ask", {"reason": "not_granted"})
            return Answer(request.id, ok=False, error=failure, decision="d-1", revision=7)
        return Answer(request.id, ok=True, data=self._now(call), decision="d-2", revision=7)

    def _now(self, call: Call) -> Any:
        data = read(call)
        match call.request.event:
            case "test:who":
                return call.principal.id
            case "test:huge":
                return "x" * (2 << 20)
            case "test:big":
                return "x" * (1 << 19)
            case "test:odd":
                return object()
            case "permission:check":
                return {"allowed": data["event"] != "agent:spawn", "event": data["event"]}
            case _:
                return data

    async def _later(self, call: Call) -> Answer:
        name = call.principal.id
        self.running[name] = self.running.get(name, 0) + 1
        try:
            if call.request.event == "test:fail":
                raise RuntimeError("a job that breaks its promise")
            if call.request.event == "test:steps" and call.progress is not None:
                for done in (1.0, 2.0):
                    call.progress(Progress(call.request.id, done, 2.0, "step"))
            else:
                await self.gate.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(name)
            raise
        finally:
            self.running[name] -= 1
        return Answer(call.request.id, ok=True, data="done")


def read(call: Call) -> Any:
    """The data of a request, decoded as its format says."""
    raw = bytes(call.request.data)
    if not raw:
        return None
    return msgspec.json.decode(raw) if call.format == "json" else msgspec.msgpack.decode(raw)


class Wire:
    """A DEALER that sends whatever a test wants."""

    def __init__(self, socket: "zmq.Socket[bytes]") -> None:
        self.socket = socket

    def send(self, *frames: bytes) -> None:
        self.socket.send_multipart(frames)

    def request(self, request_id: int | str, event: str, data: Any = None) -> None:
        body = msgspec.msgpack.encode({"id": request_id, "event": event, "data": data})
        self.send(b"R1", b"Q", body)

    async def frames(self) -> list[bytes]:
        with anyio.fail_after(5):
            # In a thread, because the face lives on this loop.
            return await anyio.to_thread.run_sync(self.socket.recv_multipart)

    async def message(self) -> tuple[bytes, dict[str, Any]]:
        version, kind, body = await self.frames()
        decode = msgspec.json.decode if version == b"J1" else msgspec.msgpack.decode
        return kind, decode(body)

    async def answer(self) -> dict[str, Any]:
        kind, body = await self.message()
        assert kind == b"A"
        return body

    async def error(self) -> str:
        return str((await self.answer())["error"]["code"])


class World:
    """A face that is up, its door, its people, and connections to it."""

    def __init__(
        self, face: SocketFace, door: EchoDoor, people: People, server_public: str
    ) -> None:
        self.face = face
        self.door = door
        self.people = people
        self._server_public = server_public
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sockets: list[zmq.Socket[bytes]] = []

    def key(self, name: str = "ann") -> Key:
        """A registered key that knows where to go."""
        return self.people.register(self.stranger(name))

    def stranger(self, name: str = "eve") -> Key:
        """A key that nobody has registered."""
        return new_key(name, server_key=self._server_public, endpoint=self.face.endpoint)

    def wire(self, key: Key, *, routing_id: bytes = b"", high_water: int = 1000) -> Wire:
        """A raw connection."""
        socket = self._context.socket(zmq.DEALER)
        socket.linger = 0
        socket.rcvtimeo = 5000
        socket.set_hwm(high_water)
        socket.curve_serverkey = key.server_key.encode()
        socket.curve_publickey = key.public_key.encode()
        socket.curve_secretkey = key.secret_key.encode()
        if routing_id:
            socket.setsockopt(zmq.ROUTING_ID, routing_id)
        socket.connect(self.face.endpoint)
        self._sockets.append(socket)
        return Wire(socket)

    def close(self) -> None:
        self._context.destroy(linger=0)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until `condition` holds."""
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110  counters have no event
            await anyio.sleep(0.001)


@asynccontextmanager
async def world(
    folder: Path, *, endpoint: str = "", limits: SocketLimits | None = None
) -> AsyncGenerator[World]:
    """Serve an `EchoDoor` in `folder`."""
    server = new_key("server")
    door, people = EchoDoor(), People()
    async with serve(
        door,
        people,
        endpoint=endpoint or f"ipc://{folder}/remit.sock",
        server_key=server.secret_key,
        limits=limits or SocketLimits(drain_seconds=0.01),
    ) as face:
        made = World(face, door, people, server.public_key)
        try:
            yield made
        finally:
            made.close()
