"""Answers and pushed events on their way out: nobody waits for a client that does not read."""

from pathlib import Path

import anyio
import msgspec
import zmq
from tests.faces.zmq.exchange import Exchange, ask, exchange, pushes, read_all, say
from tests.faces.zmq.world import Wire, until, world

from remit.faces.zmq.frames import PushFrame
from remit.faces.zmq.limits import SocketLimits
from remit.model.event import Notice
from remit.model.principal import Agent, AgentSpec
from remit_client.wire import Push


def frame(text: str = "hello") -> PushFrame:
    return PushFrame("message:news", {"text": text}, origin="bob", at=1.5)


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
        assert served.face.push("ann", frame()) == 1
        await greet_after_push(first)
        await greet(second)
        assert served.face.push("ann", frame()) == 2
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
        served.face.push("ann", frame())
        version, kind, body = await wire.frames()
    assert (version, kind) == (b"J1", b"E")
    assert msgspec.json.decode(body, type=Push).event == "message:news"


async def test_a_push_to_nobody_reaches_nobody(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        assert served.face.push("ann", frame()) == 0


async def test_a_slow_reader_is_told_how_many_it_missed(tmp_path: Path) -> None:
    limits = SocketLimits(high_water=2, backlog=8, drain_seconds=0.01, linger_ms=0)
    async with world(tmp_path, limits=limits) as served:
        wire = served.wire(served.key(), high_water=2)
        await greet(wire)
        sent = 0
        while served.face.stats.dropped < 5:
            served.face.push("ann", frame("x" * 100_000))
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
        served.face.push("ann", frame())
        assert (await wire.message())[1]["seq"] == sent + 1


async def test_a_reader_that_misses_pushes_keeps_its_connection(tmp_path: Path) -> None:
    limits = SocketLimits(high_water=2, backlog=8, drain_seconds=0.01, linger_ms=0)
    async with world(tmp_path, limits=limits) as served:
        wire = served.wire(served.key(), high_water=2)
        await greet(wire)
        while served.face.stats.dropped < 5:
            served.face.push("ann", frame("x" * 100_000))
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
        assert served.face.push("ann", frame()) == 0


TIGHT = SocketLimits(high_water=16, backlog=32, drain_seconds=0.01, linger_ms=0)


def hold(served: Exchange, name: str, profile: str) -> None:
    agent = served.desk.authority.fleet.get(name)
    assert agent is not None
    spec = AgentSpec(profile=profile)
    changed = Agent(id=name, public_key=agent.public_key, spec=spec)
    served.desk.authority.fleet.replace(changed)


async def test_each_publisher_is_heard_in_its_own_order_and_numbers_have_no_hole(
    tmp_path: Path,
) -> None:
    async with exchange(tmp_path) as served:
        listener = await served.listener("lea", "team")
        talkers = [served.world.wire(served.agent(name)) for name in ("ann", "bob")]
        for number in range(100):
            for talker in talkers:
                data = {"channel": "team", "data": number}
                talker.request(number, "message:publish", data)
        heard = await pushes(listener, 200)
        for talker in talkers:
            assert [(await talker.answer())["id"] for _ in range(100)] == list(range(100))
    assert [push.seq for push in heard] == list(range(1, 201))
    for name in ("ann", "bob"):
        said = [push.data["data"] for push in heard if push.origin == name]
        assert said == list(range(100))


async def test_two_connections_of_one_agent_are_numbered_apart(tmp_path: Path) -> None:
    async with exchange(tmp_path) as served:
        key = served.agent("lea")
        both, one = served.world.wire(key), served.world.wire(key)
        await ask(both, "message:subscribe", channels=["a", "b"])
        await ask(one, "message:subscribe", channels=["b"])
        talker = served.world.wire(served.agent("ann"))
        assert await say(talker, "a", 1) == 1
        assert await say(talker, "b", 2) == 2
        assert [push.seq for push in await pushes(both, 2)] == [1, 2]
        assert [push.seq for push in await pushes(one, 1)] == [1]


async def test_a_subscriber_that_never_reads_loses_only_its_own_messages(tmp_path: Path) -> None:
    rounds, at_once, body = 15, 10, "x" * 4000
    async with exchange(tmp_path, limits=TIGHT) as served:
        sleeper = await served.listener("sleeper", "team", high_water=2)
        readers = [await served.listener(f"reader{number}", "team") for number in range(200)]
        talker = served.world.wire(served.agent("ann"))
        delivered: list[int] = []
        for _ in range(rounds):
            delivered += [await say(talker, "team", body) for _ in range(at_once)]
            await read_all(readers, at_once)
        (peer,) = served.face._peers.named("sleeper")
        # Bounded: half of the backlog is for pushes, the other half for answers.
        assert len(peer.backlog) <= TIGHT.backlog // 2
        assert (delivered[0], delivered[-1]) == (201, 200)
        assert served.face.stats.dropped == delivered.count(200) > 0
        await catch_up(sleeper, rounds * at_once, missed=served.face.stats.dropped)
        assert await say(talker, "team", "awake") == 201
        (push,) = await pushes(sleeper, 1)
        assert (push.seq, push.data["data"]) == (rounds * at_once + 1, "awake")


async def catch_up(sleeper: Wire, total: int, *, missed: int) -> None:
    """Read what is left; the gap notices account for everything that is not."""
    numbers: list[int] = []
    told = 0
    while len(numbers) + told < total:
        kind, body = await sleeper.message()
        if kind == b"E":
            numbers.append(body["seq"])
        else:
            told += body["missed"]
    assert told == missed
    assert numbers == sorted(set(numbers))


async def test_a_storm_of_messages_to_one_that_does_not_read_stops_nobody(tmp_path: Path) -> None:
    async with exchange(tmp_path, limits=TIGHT) as served:
        await served.listener("sleeper", "team", high_water=2)
        talker, other = (
            served.world.wire(served.agent("ann")), served.world.wire(served.agent("bob")),
        )  # fmt: skip
        for _ in range(50):
            for number in range(40):
                data = {"channel": "team", "data": "x" * 2000}
                talker.request(number, "message:publish", data)
            for _ in range(40):
                assert (await talker.answer())["ok"]
        assert (await ask(other, "system:health"))["status"] == "ok"
        (peer,) = served.face._peers.named("sleeper")
        assert len(peer.backlog) <= TIGHT.backlog // 2
        assert served.face.stats.dropped > 1000
        assert served.face.stats.evicted == 0


async def test_a_grant_narrowed_between_two_messages_stops_the_second(tmp_path: Path) -> None:
    async with exchange(tmp_path) as served:
        listener = await served.listener("lea", "team")
        talker = served.world.wire(served.agent("ann"))
        assert await say(talker, "team", 1) == 1
        hold(served, "lea", "minimal")
        assert await say(talker, "team", 2) == 0
        hold(served, "lea", "communicator")
        assert await say(talker, "team", 3) == 1
        assert [(push.seq, push.data["data"]) for push in await pushes(listener, 2)] == [
            (1, 1), (2, 3),
        ]  # fmt: skip


async def test_a_revoked_subscriber_gets_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with exchange(tmp_path) as served:
        listener = await served.listener("lea", "team")
        talker = served.world.wire(served.agent("ann"))
        served.desk.keyring.dismiss(["lea"])
        assert await say(talker, "team", 1) == 0
        assert served.bus.on_channel("team") == ()
        assert not listener.socket.poll(50)


async def test_subscriptions_end_with_their_connection(tmp_path: Path) -> None:
    async with exchange(tmp_path) as served:
        listener = await served.listener("lea", "team")
        await ask(listener, "event:subscribe", patterns=["*"])
        listener.socket.close(linger=0)
        await until(lambda: served.bus.on_channel("team") == ())
        assert served.bus.hearers("message:publish") == ()


async def test_to_deliver_on_a_connection_that_is_gone_does_nothing(tmp_path: Path) -> None:
    async with exchange(tmp_path) as served:
        listener = await served.listener("lea", "team")
        (peer,) = served.face._peers.named("lea")
        listener.socket.close(linger=0)
        await until(lambda: peer.gone)
        assert not served.face.deliver(peer, Notice("message:direct", 1, "ann", 0.0))
        assert served.face.tell("lea", Notice("message:direct", 1, "ann", 0.0)) == 0


async def test_whoever_takes_over_a_routing_id_does_not_take_over_its_messages(
    tmp_path: Path,
) -> None:
    async with exchange(tmp_path) as served:
        listener = await served.listener("lea", "team", routing_id=b"chosen")
        talker = served.world.wire(served.agent("ann"))
        eve = served.agent("eve")
        listener.socket.close(linger=0)
        thief = served.world.wire(eve, routing_id=b"chosen")
        for number in range(200):
            await say(talker, "team", number)
        await until(lambda: served.bus.on_channel("team") == ())
        try:
            answer = await ask(thief, "message:subscriptions")
        except zmq.Again:  # it came while the name was still taken: such a one is never answered
            thief.socket.close(linger=0)
            thief = served.world.wire(eve, routing_id=b"chosen")
            answer = await ask(thief, "message:subscriptions")
        assert answer["channels"] == []


async def test_a_pushed_event_reaches_a_subscriber_by_pattern(tmp_path: Path) -> None:
    async with exchange(tmp_path) as served:
        watcher = served.world.wire(served.agent("wim", "executor"))
        await ask(watcher, "event:subscribe", patterns=["state:*"])
        writer = served.world.wire(served.agent("ann", "executor"))
        with anyio.fail_after(5):
            await ask(writer, "state:set", key="plan", value="secret")
        (push,) = await pushes(watcher, 1)
        assert (push.event, push.origin) == ("state:set", "ann")
        assert push.data == {"key": "plan", "version": 1, "by": "ann"}
