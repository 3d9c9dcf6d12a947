"""The real dispatcher and bus behind a real socket, inside the test's own process."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import zmq
from tests.faces.zmq.world import EchoDoor, People, Wire, World
from tests.fakes import Desk, built_in_handlers, starter_files

from remit.faces.zmq.face import serve
from remit.faces.zmq.limits import SocketLimits
from remit.model.principal import Agent, AgentSpec
from remit_client.keys import Key, new_key
from remit_client.wire import Push


class Exchange:
    """A face with a desk behind it, and raw connections of agents that may talk."""

    def __init__(self, world: World, desk: Desk) -> None:
        self.world = world
        self.face = world.face
        self.desk = desk
        self.bus = desk.kernel.delivery.bus

    def agent(self, name: str, profile: str = "communicator") -> Key:
        key = self.world.stranger(name)
        spec = AgentSpec(profile=profile)
        self.desk.keyring.admit(Agent(id=name, public_key=key.public_key, spec=spec))
        return key

    async def listener(self, name: str, *channels: str, **options: Any) -> Wire:
        """A connection of a new agent that listens to channels."""
        wire = self.world.wire(self.agent(name), **options)
        await ask(wire, "message:subscribe", channels=list(channels))
        return wire


async def ask(wire: Wire, event: str, **data: Any) -> Any:
    """The data of the answer; what is pushed meanwhile must not be there."""
    wire.request(0, event, data)
    answer = await wire.answer()
    assert answer["ok"], answer
    return answer["data"]


async def say(wire: Wire, channel: str, data: Any) -> int:
    """Publish, and tell to how many."""
    return int((await ask(wire, "message:publish", channel=channel, data=data))["delivered"])


async def pushes(wire: Wire, count: int) -> list[Push]:
    found = []
    for _ in range(count):
        kind, body = await wire.message()
        assert kind == b"E"
        found.append(msgspec.convert(body, Push))
    return found


async def read_all(wires: list[Wire], count: int) -> None:
    """Read until each of many connections has got so many messages, all of them pushes."""
    with anyio.fail_after(20):
        await anyio.to_thread.run_sync(_read_all, wires, count, abandon_on_cancel=True)


def _read_all(wires: list[Wire], count: int) -> None:
    poller = zmq.Poller()
    left = {}
    for wire in wires:
        poller.register(wire.socket, zmq.POLLIN)
        left[wire.socket] = count
    while left:
        for socket, _ in poller.poll(5000) or [(None, 0)]:
            assert socket is not None, f"{len(left)} connections got nothing for a while"
            _, kind, _ = socket.recv_multipart()
            assert kind == b"E"
            left[socket] -= 1
            if not left[socket]:
                poller.unregister(socket)
                del left[socket]


@asynccontextmanager
async def exchange(folder: Path, *, limits: SocketLimits | None = None) -> AsyncGenerator[Exchange]:
    server = new_key("server")
    desk = Desk(built_in_handlers(), starter_files())
    delivery = desk.kernel.delivery
    async with serve(
        desk.dispatcher,
        desk.keyring,
        endpoint=f"ipc://{folder}/remit.sock",
        server_key=server.secret_key,
        limits=limits or SocketLimits(drain_seconds=0.01, linger_ms=0),
    ) as face:
        delivery.post = face
        face.on_gone = delivery.bus.drop

        def evict(name: str) -> None:
            face.evict(name)

        desk.keyring.on_revoke = evict
        world = World(face, EchoDoor(), People(), server.public_key)
        try:
            yield Exchange(world, desk)
        finally:
            world.close()
