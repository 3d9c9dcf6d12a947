"""Pushed events: numbered, dropped with notice, and never in anybody's way."""

from pathlib import Path

import anyio
import msgspec
from tests.faces.zmq.world import Wire, until, world

from remit.faces.zmq import Limits, Parcel
from remit_client.wire import Push


def parcel(text: str = "hello") -> Parcel:
    return Parcel("message:news", {"text": text}, origin="bob", at=1.5)


async def greet(wire: Wire) -> None:
    """The face knows a connection once it has spoken."""
    wire.request(0, "test:who")
    await wire.answer()


async def test_every_connection_of_a_principal_gets_a_push_with_its_own_numbers(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as served:
        key = served.key()
        first, second, other = served.wire(key), served.wire(key), served.wire(served.key("bob"))
        await greet(first)
        await greet(other)
        assert served.face.push("ann", parcel()) == 1
        await greet_after_push(first)
        await greet(second)
        assert served.face.push("ann", parcel()) == 2
        assert (await first.message())[1]["seq"] == 2
        assert (await second.message())[1]["seq"] == 1
        other.request(1, "test:who")
        assert (await other.answer())["id"] == 1


async def greet_after_push(wire: Wire) -> None:
    kind, body = await wire.message()
    assert kind == b"E"
    assert body == {
        "seq": 1, "event": "message:news", "data": {"text": "hello"}, "origin": "bob", "at": 1.5,
    }  # fmt: skip


async def test_a_json_client_gets_its_pushes_as_json(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.send(b"J1", b"Q", b'{"id": 1, "event": "test:who"}')
        await wire.answer()
        served.face.push("ann", parcel())
        version, kind, body = await wire.frames()
    assert (version, kind) == (b"J1", b"E")
    assert msgspec.json.decode(body, type=Push).event == "message:news"


async def test_a_push_to_nobody_reaches_nobody(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        assert served.face.push("ann", parcel()) == 0


async def test_a_slow_reader_is_told_how_many_it_missed(tmp_path: Path) -> None:
    limits = Limits(high_water=2, backlog=8, drain_seconds=0.01, linger_ms=0)
    async with world(tmp_path, limits=limits) as served:
        wire = served.wire(served.key(), high_water=2)
        await greet(wire)
        sent = 0
        while served.face.stats.dropped < 5:
            served.face.push("ann", parcel("x" * 100_000))
            sent += 1
        got, missed = 0, 0
        while got + missed < sent:
            kind, body = await wire.message()
            if kind == b"E":
                got += 1
            else:
                assert kind == b"G"
                missed += body["missed"]
        assert missed == served.face.stats.dropped
        assert got == sent - missed
        served.face.push("ann", parcel())
        assert (await wire.message())[1]["seq"] == sent + 1


async def test_a_reader_that_misses_pushes_keeps_its_connection(tmp_path: Path) -> None:
    limits = Limits(high_water=2, backlog=8, drain_seconds=0.01, linger_ms=0)
    async with world(tmp_path, limits=limits) as served:
        wire = served.wire(served.key(), high_water=2)
        await greet(wire)
        while served.face.stats.dropped < 5:
            served.face.push("ann", parcel("x" * 100_000))
        wire.request(1, "test:who")
        with anyio.fail_after(5):
            while (await wire.message())[0] != b"A":
                pass
        assert served.face.stats.evicted == 0
        assert served.face.stats.clients == 1


async def test_a_closed_connection_is_forgotten(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        await greet(wire)
        wire.socket.close(linger=0)
        await until(lambda: served.face.stats.clients == 0)
        assert served.face.push("ann", parcel()) == 0
