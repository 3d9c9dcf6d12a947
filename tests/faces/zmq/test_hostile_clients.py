"""What a hostile or broken client can send, and what must go on regardless."""

import socket
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
import zmq
from tests.faces.zmq.world import Wire, World, until, world

from remit.faces.zmq.limits import SocketLimits

GOOD = msgspec.msgpack.encode({"id": 1, "event": "test:echo", "data": 1})
DEEP = b"\x91" * 10_000 + b"\xc0"


async def assert_alive(served: World, name: str = "bob") -> None:
    """Somebody else is served."""
    wire = served.wire(served.key(name))
    wire.request("alive", "test:who")
    assert (await wire.answer())["data"] == name


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        pytest.param([b"R1"], "bad_frame", id="one-frame"),
        pytest.param([b""], "bad_frame", id="one-empty-frame"),
        pytest.param([b"R1", b"Q"], "bad_frame", id="two-frames"),
        pytest.param([b"R1", b"Q", GOOD, b"more"], "bad_frame", id="four-frames"),
        pytest.param([b"R1", b"Q", *[b"x"] * 500], "bad_frame", id="five-hundred-frames"),
        pytest.param([b"R2", b"Q", GOOD], "unsupported_version", id="a-later-version"),
        pytest.param([b"", b"Q", GOOD], "unsupported_version", id="no-version"),
        pytest.param([b"J9", b"Q", b'{"id": 1}'], "unsupported_version", id="a-later-json"),
        pytest.param([b"R1", b"Z", GOOD], "bad_frame", id="an-unknown-kind"),
        pytest.param([b"R1", b"A", GOOD], "bad_frame", id="an-answer"),
        pytest.param([b"R1", b"E", GOOD], "bad_frame", id="a-pushed-event"),
        pytest.param([b"R1", b"Q", b""], "bad_frame", id="no-body"),
        pytest.param([b"R1", b"Q", GOOD[:-4]], "bad_frame", id="truncated-msgpack"),
        pytest.param([b"R1", b"Q", GOOD + b"\x00"], "bad_frame", id="trailing-bytes"),
        pytest.param([b"R1", b"Q", b"\xc1"], "bad_frame", id="no-msgpack-at-all"),
        pytest.param(
            [b"R1", b"Q", b"\x82\xa2id\x01\xa5event\xa2\xff\xfe"], "bad_frame", id="bad-utf-8"
        ),
        pytest.param(
            [b"J1", b"Q", b'{"id": 1, "event": "\xff"}'], "bad_frame", id="json-bad-utf-8"
        ),
        pytest.param([b"R1", b"Q", DEEP], "bad_frame", id="10000-deep"),
        pytest.param(
            [b"R1", b"Q", b"\x83\xa2id\x01\xa5event\xa1x\xa4data" + DEEP],
            "bad_frame",
            id="10000-deep-inside-the-data",
        ),
        pytest.param([b"J1", b"Q", b"[" * 10_000], "bad_frame", id="json-10000-deep"),
        pytest.param([b"R1", b"Q", msgspec.msgpack.encode({"id": 1})], "bad_frame", id="no-event"),
        pytest.param(
            [b"R1", b"Q", msgspec.msgpack.encode({"id": [], "event": "a:b"})],
            "bad_frame",
            id="an-id-that-is-a-list",
        ),
        pytest.param([b"R1", b"C", b"\xff"], "bad_frame", id="an-unreadable-cancel"),
    ],
)
async def test_a_message_that_is_not_understood_is_refused_and_counted(
    tmp_path: Path, frames: list[bytes], code: str
) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.send(*frames)
        answer = await wire.answer()
        assert answer["error"]["code"] == code
        assert answer["error"]["hint"]
        assert served.face.stats.bad_frames == 1
        assert served.door.seen == []
        wire.request(2, "test:echo", "still here")
        assert (await wire.answer())["data"] == "still here"


async def test_a_refusal_names_the_request_when_its_id_can_be_read(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.send(b"R1", b"Q", msgspec.msgpack.encode({"id": 77}))
        assert (await wire.answer())["id"] == 77


async def test_a_later_json_client_is_told_in_json(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.send(b"J9", b"Q", b'{"id": 4}')
        version, _, body = await wire.frames()
        assert version == b"J1"
        assert msgspec.json.decode(body)["id"] == 4


async def test_two_mebibytes_cost_the_sender_its_connection_and_nobody_else(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:echo")
        await wire.answer()
        wire.send(b"R1", b"Q", b"x" * (2 << 20))
        await until(lambda: served.face.stats.clients == 0)
        await assert_alive(served)
        assert served.face.stats.messages == 2


async def test_a_surplus_frame_is_not_taken_for_somebody_elses_address(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        victim = served.wire(served.key("victim"), routing_id=b"victim")
        victim.request(1, "test:echo", "mine")
        assert (await victim.answer())["data"] == "mine"
        attacker = served.wire(served.key("eve"))
        attacker.send(b"R1", b"Q", GOOD, b"victim", b"R1", b"Q", GOOD)
        attacker.send(b"R1", b"victim")
        attacker.send(b"victim")
        for _ in range(3):
            assert await attacker.error() == "bad_frame"
        victim.request(2, "test:echo", "next")
        assert (await victim.answer())["data"] == "next"
        assert served.door.seen == ["test:echo", "test:echo"]


async def test_nobody_gets_in_under_a_routing_id_that_is_taken(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        first = served.wire(served.key("ann"), routing_id=b"same")
        first.request(1, "test:who")
        assert (await first.answer())["data"] == "ann"
        second = served.wire(served.key("eve"), routing_id=b"same")
        await until(lambda: served.face.stats.admitted == 2)
        second.request(1, "test:who")
        first.request(2, "test:who")
        assert (await first.answer()) == {
            "id": 2, "ok": True, "data": "ann", "decision": "d-2", "revision": 7,
        }  # fmt: skip
        assert served.face.stats.messages == 2


async def test_an_answer_never_goes_to_the_next_holder_of_a_routing_id(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        first = served.wire(served.key("ann"), routing_id=b"same")
        first.request(1, "test:wait")
        await until(lambda: served.door.running.get("ann") == 1)
        first.socket.close(linger=0)
        await until(lambda: served.face.stats.clients == 0)
        second = served.wire(served.key("eve"), routing_id=b"same")
        second.request(2, "test:who")
        assert (await second.answer())["data"] == "eve"
        served.door.gate.set()
        await until(lambda: served.face.stats.jobs == 0)
        second.request(3, "test:who")
        assert (await second.answer())["id"] == 3


async def test_only_the_sender_can_cancel_a_request(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        ann, eve = served.wire(served.key("ann")), served.wire(served.key("eve"))
        ann.request(1, "test:wait")
        await until(lambda: served.door.running.get("ann") == 1)
        eve.send(b"R1", b"C", msgspec.msgpack.encode({"id": 1}))
        eve.request(9, "test:who")
        assert (await eve.answer())["data"] == "eve"
        served.door.gate.set()
        assert (await ann.answer())["data"] == "done"
        assert served.door.cancelled == []


async def flood(wire: Wire, event: str) -> None:
    """Send for ever without reading."""
    body = msgspec.msgpack.encode({"id": 1, "event": event})
    while True:
        try:
            wire.socket.send_multipart((b"R1", b"Q", body), zmq.NOBLOCK)
        except zmq.Again:
            await anyio.sleep(0.001)
        await anyio.lowlevel.checkpoint()


async def test_a_client_that_never_reads_is_cut_off_and_delays_nobody(tmp_path: Path) -> None:
    limits = SocketLimits(high_water=2, backlog=8, drain_seconds=0.01, linger_ms=0)
    async with world(tmp_path, limits=limits) as served:
        slow = served.wire(served.key("slow"), high_water=1)
        quick = served.wire(served.key("quick"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood, slow, "test:big")
            for number in range(50):
                quick.request(number, "test:echo", number)
                assert (await quick.answer())["data"] == number
            await until(lambda: served.face.stats.evicted > 0)
            tasks.cancel_scope.cancel()


async def test_two_hundred_connects_that_never_finish_stop_nobody(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        path = str(tmp_path / "remit.sock")
        half_open: list[socket.socket] = []
        try:
            for _ in range(200):
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                half_open.append(connection)
                connection.settimeout(0)
                connection.connect(path)
                connection.send(b"\xff\x00\x00\x00")
            await assert_alive(served)
        finally:
            for connection in half_open:
                connection.close()


async def test_a_stranger_never_reaches_the_door(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.stranger())
        wire.request(1, "test:who")
        await until(lambda: served.face.stats.refused > 0)
        await assert_alive(served)
        assert served.door.seen == ["test:who"]
        assert served.face.stats.messages == 1


async def test_a_client_without_encryption_never_reaches_the_door(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        context: zmq.Context[Any] = zmq.Context()
        plain = context.socket(zmq.DEALER)
        plain.connect(served.face.endpoint)
        plain.send_multipart((b"R1", b"Q", GOOD))
        await assert_alive(served)
        assert served.face.stats.messages == 1
        context.destroy(linger=0)


async def test_a_client_that_goes_on_sending_too_much_is_cut_off(tmp_path: Path) -> None:
    limits = SocketLimits(inbox_bytes=2_000, batch=1, drain_seconds=0.01)
    async with world(tmp_path, limits=limits) as served:
        ann = served.wire(served.key("ann"), high_water=10_000)
        for number in range(3_000):
            ann.request(number, "test:echo", "x" * 1000)
        await until(lambda: served.face.stats.evicted > 0)
        bob = served.wire(served.key("bob"))
        bob.request(1, "test:who")
        assert (await bob.answer())["data"] == "bob"


async def test_requests_in_flight_are_bounded_in_bytes(tmp_path: Path) -> None:
    limits = SocketLimits(in_flight_bytes=5_000, drain_seconds=0.01)
    async with world(tmp_path, limits=limits) as served:
        ann = served.wire(served.key("ann"))
        for number in range(4):
            ann.request(number, "test:wait", "x" * 2_000)
        refused = [(await ann.answer()) for _ in range(2)]
        assert {one["id"] for one in refused} == {2, 3}
        assert {one["error"]["code"] for one in refused} == {"limit_exceeded"}
        served.door.gate.set()
        assert {(await ann.answer())["id"] for _ in range(2)} == {0, 1}
        ann.request(9, "test:wait", "x" * 9_000)  # one alone may be larger
        assert (await ann.answer())["ok"]


async def test_large_answers_that_nobody_reads_are_held_within_their_bytes(tmp_path: Path) -> None:
    big = 1 << 19
    limits = SocketLimits(unread_bytes=2 * big, backlog_bytes=4 * big, drain_seconds=0.01)
    async with world(tmp_path, limits=limits) as served:
        key = served.key("ann")
        ann, other = served.wire(key), served.wire(key)
        ann.socket.setsockopt(zmq.RCVHWM, 1)
        for number in range(40):
            ann.request(number, "test:big")
        await until(lambda: served.face.stats.evicted > 0 or served.face.stats.messages >= 40)
        other.request(99, "test:big")  # the same principal is not silenced
        assert len((await other.answer())["data"]) == big
        held = served.face.load("ann")
        assert held.queue * big <= 4 * limits.backlog_bytes + big
