"""Pushed events, as the clients read them."""

from pathlib import Path

import anyio
import pytest
from tests.faces.zmq.world import until, world

import remit_client
from remit.faces.zmq.frames import PushFrame
from remit_client.inbox import QUEUE_SIZE


def frame(event: str, data: object = None) -> PushFrame:
    return PushFrame(event, data, origin="bob", at=2.0)


async def test_pushed_events_arrive_in_order_and_only_those_that_were_asked_for(
    tmp_path: Path,
) -> None:
    async with (
        world(tmp_path) as served,
        remit_client.connect(key=served.key()) as remit,
        remit.subscribe("message:*", "config:changed") as events,
    ):
        for event in ("message:a", "state:b", "config:changed", "config:rejected"):
            served.face.push("ann", frame(event))
        served.face.push("ann", frame("message:last", {"x": 1}))
        with anyio.fail_after(5):
            got = [await anext(events) for _ in range(3)]
    assert [(push.event, push.seq) for push in got] == [
        ("message:a", 1), ("config:changed", 3), ("message:last", 5),
    ]  # fmt: skip
    assert (got[2].data, got[2].origin, got[2].at) == ({"x": 1}, "bob", 2.0)


async def test_the_daemon_is_told_of_the_first_and_the_last_subscription(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        async with remit.subscribe("message:*"):
            async with remit.subscribe("message:*"):
                pass
            assert "event:unsubscribe" not in served.door.seen
        assert served.door.seen == ["event:subscribe", "event:subscribe", "event:unsubscribe"]


async def test_a_reader_that_falls_behind_knows_how_much_it_missed(tmp_path: Path) -> None:
    async with (
        world(tmp_path) as served,
        remit_client.connect(key=served.key()) as remit,
        remit.subscribe("message:*") as events,
    ):
        for number in range(QUEUE_SIZE + 10):
            served.face.push("ann", frame("message:n", number))
            await remit.call("test:who")
        await until(lambda: events.missed == 10)
        assert (await anext(events)).data == 0


async def test_a_gap_notice_of_the_daemon_is_counted(tmp_path: Path) -> None:
    async with (
        world(tmp_path) as served,
        remit_client.connect(key=served.key()) as remit,
        remit.subscribe("message:*") as events,
    ):
        for peer in served.face._peers.named("ann"):
            peer.missed = 3
        served.face.push("ann", frame("message:n"))
        with anyio.fail_after(5):
            await anext(events)
        assert events.missed == 3


async def test_a_subscription_of_a_revoked_client_ends_with_the_reason(tmp_path: Path) -> None:
    async with (
        world(tmp_path) as served,
        remit_client.connect(key=served.key()) as remit,
        remit.subscribe("message:*") as events,
    ):
        served.people.revoke("ann")
        served.face.evict("ann")
        with anyio.fail_after(5), pytest.raises(remit_client.Unauthorised):
            await anext(events)
