"""Requests as they are read: each is answered, in turn, and nobody's may stop another's."""

import stat
from pathlib import Path

import anyio
import msgspec
import pytest
import zmq
from tests.faces.zmq.world import EchoDoor, People, until, world

from remit.errors import SettingsError
from remit.faces.zmq.face import serve
from remit.faces.zmq.frames import MSGPACK
from remit.faces.zmq.limits import SocketLimits
from remit.faces.zmq.peers import Peer
from remit.faces.zmq.reader import Inbox, InboxMessage
from remit_client.keys import new_key


async def test_a_request_is_answered_with_its_decision_and_revision(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:echo", {"a": 1})
        answer = await wire.answer()
    assert answer == {"id": 1, "ok": True, "data": {"a": 1}, "decision": "d-2", "revision": 7}


async def test_a_json_client_gets_json(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.send(b"J1", b"Q", b'{"id": "a", "event": "test:echo", "data": {"x": [1]}}')
        version, kind, body = await wire.frames()
    assert (version, kind) == (b"J1", b"A")
    assert msgspec.json.decode(body)["data"] == {"x": [1]}


async def test_identity_comes_from_the_key(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wires = {name: served.wire(served.key(name)) for name in ("ann", "bob")}
        for wire in wires.values():
            wire.request(1, "test:who", {"agent": "operator", "principal": "operator"})
        answers = {name: (await wire.answer())["data"] for name, wire in wires.items()}
    assert answers == {"ann": "ann", "bob": "bob"}


async def test_tcp_works_like_ipc(tmp_path: Path) -> None:
    async with world(tmp_path, endpoint="tcp://127.0.0.1:*") as served:
        wire = served.wire(served.key())
        wire.request(1, "test:who")
        assert (await wire.answer())["data"] == "ann"


async def test_progress_comes_before_the_answer(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(5, "test:steps")
        messages = [await wire.message() for _ in range(3)]
    assert [kind for kind, _ in messages] == [b"P", b"P", b"A"]
    assert messages[1][1] == {"id": 5, "done": 2.0, "total": 2.0, "message": "step"}


@pytest.mark.parametrize(
    ("event", "code"),
    [
        pytest.param("test:huge", "too_large", id="more-than-fits"),
        pytest.param("test:odd", "internal", id="no-form-on-the-wire"),
        pytest.param("test:fail", "internal", id="a-job-that-raises"),
    ],
)
async def test_an_answer_that_cannot_be_sent_becomes_an_error(
    tmp_path: Path, event: str, code: str
) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, event)
        assert await wire.error() == code


async def test_a_door_that_raises_is_answered_as_internal(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:crash")
        assert await wire.error() == "internal"


async def test_a_waiting_job_holds_nobody_up(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:wait")
        wire.request(2, "test:echo")
        assert (await wire.answer())["id"] == 2
        served.door.gate.set()
        assert (await wire.answer())["id"] == 1


async def test_cancelling_ends_the_job_and_answers_cancelled(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:wait")
        wire.send(b"R1", b"C", msgspec.msgpack.encode({"id": 1}))
        assert await wire.error() == "cancelled"
        assert served.face.stats.jobs == 0


async def test_an_id_in_flight_cannot_be_used_again(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:wait")
        wire.request(1, "test:wait")
        assert await wire.error() == "conflict"
        served.door.gate.set()
        assert (await wire.answer())["ok"]


async def test_too_many_jobs_of_one_key_are_refused_over_all_its_connections(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=SocketLimits(in_flight=2, drain_seconds=0.01)) as served:
        key = served.key()
        first, second = served.wire(key), served.wire(key)
        first.request(1, "test:wait")
        first.request(2, "test:wait")
        await until(lambda: served.face.stats.jobs == 2)
        second.request(1, "test:wait")
        error = (await second.answer())["error"]
        other = served.wire(served.key("bob"))
        other.request(1, "test:echo", 3)
        assert (await other.answer())["data"] == 3
    assert error["code"] == "limit_exceeded"
    assert error["details"]["retry_after"] > 0


async def test_the_socket_file_is_for_its_owner_only_and_goes_away(tmp_path: Path) -> None:
    async with world(tmp_path):
        mode = (tmp_path / "remit.sock").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert not (tmp_path / "remit.sock").exists()


async def test_stopping_lets_jobs_end_and_sends_their_answers(tmp_path: Path) -> None:
    async with world(tmp_path, limits=SocketLimits(drain_seconds=5)) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:wait")
        await until(lambda: served.door.running.get("ann") == 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(served.face.drain)
            served.door.gate.set()
            assert (await wire.answer())["data"] == "done"


async def test_stopping_cancels_jobs_that_do_not_end(tmp_path: Path) -> None:
    async with world(tmp_path, limits=SocketLimits(drain_seconds=0.01)) as served:
        wire = served.wire(served.key())
        wire.request(1, "test:wait")
        await until(lambda: served.door.running.get("ann") == 1)
        await served.face.drain()
        assert await wire.error() == "cancelled"
    assert served.door.cancelled == ["ann"]


@pytest.mark.parametrize(
    ("endpoint", "hint"),
    [
        pytest.param("ipc:///tmp/" + "x" * 200, "shorter", id="path-too-long"),
        pytest.param("ipc:///no/such/folder/remit.sock", "create", id="no-folder"),
        pytest.param("nonsense", "ipc:///", id="not-an-endpoint"),
    ],
)
async def test_an_endpoint_that_cannot_be_served_says_how_to_repair_it(
    endpoint: str, hint: str
) -> None:
    key = new_key("server").secret_key
    with pytest.raises(SettingsError) as caught:
        async with serve(EchoDoor(), People(), endpoint=endpoint, server_key=key):
            pass
    assert hint in caught.value.hint


async def test_what_fails_inside_the_block_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        async with world(tmp_path):
            raise KeyError("mine")


EACH = 1000


def letter(peer: Peer) -> InboxMessage:
    return peer, MSGPACK, b"Q", zmq.Frame(b"x" * (EACH - 512))


def client(name: str) -> Peer:
    return Peer(name.encode(), f"key of {name}", name)


def test_clients_take_turns_however_much_one_of_them_sends() -> None:
    inbox, ann, bob = Inbox(100 * EACH), client("ann"), client("bob")
    for peer in (ann, ann, ann, bob, bob):
        assert inbox.add(letter(peer))
    order = [inbox.next()[0].name for _ in range(5)]
    assert order == ["ann", "bob", "ann", "bob", "ann"]
    assert not inbox


def test_a_client_keeps_so_many_bytes_and_one_message_in_any_case() -> None:
    inbox, ann, bob = Inbox(2 * EACH), client("ann"), client("bob")
    assert [inbox.add(letter(ann)) for _ in range(4)] == [True, True, False, False]
    assert inbox.add(letter(bob))
    inbox.next()
    assert inbox.add(letter(ann))
    assert Inbox(1).add(letter(ann))


def test_other_connections_of_a_client_share_its_bytes() -> None:
    inbox = Inbox(2 * EACH)
    one, other = client("ann"), Peer(b"other", "key of ann", "ann")
    assert [inbox.add(letter(peer)) for peer in (one, other, other)] == [True, True, False]


def test_who_goes_on_as_long_again_floods() -> None:
    inbox, ann = Inbox(2 * EACH), client("ann")
    for _ in range(4):
        inbox.add(letter(ann))
        assert not inbox.is_flooded(ann)
    inbox.add(letter(ann))
    assert inbox.is_flooded(ann)
    while inbox:
        inbox.next()
    assert not inbox.is_flooded(ann)
