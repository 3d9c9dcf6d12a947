"""Streams carry what their reader may see, as long as it may."""

import anyio
import pytest
from tests.acceptance.site import PATIENCE
from tests.faces.http.world import World, everything, served

from remit.faces.http.server import HttpLimits
from remit.features.messages.mailbox import Mailbox

HOST = "Host: localhost"


async def test_what_happens_is_heard_in_order() -> None:
    async with served() as world:
        who = await world.headers()
        async with world.listen(who, "?pattern=state:*") as ear:
            for value in range(3):
                await world.call(who, "state:set", {"key": "a", "value": value})
            heard = [await ear.event() for _ in range(3)]
        assert [data["seq"] for _, data in heard] == [1, 2, 3]
        assert {name for name, _ in heard} == {heard[0][1]["event"]}
        assert heard[0][1]["data"]["key"] == "a"
        assert heard[0][1]["origin"] == "operator"


async def test_a_channel_is_heard_and_a_message_for_one_alone_too() -> None:
    async with served() as world:
        await world.add("ann", "base_multi_agent")
        who, ann = await world.headers(), await world.headers("ann")
        async with world.listen(ann, "?channel=team/plan") as ear:
            await world.call(who, "message:publish", {"channel": "team/plan", "data": 5})
            assert (await ear.event())[1]["data"] == {"channel": "team/plan", "data": 5}
            asked = {"agent_id": "ann", "message": "hello"}
            told = await world.call(who, "agent:send_message", asked)
            assert told.json()["delivered"] == 1
            name, data = await ear.event()
            assert (name, data["data"]["message"]) == ("message:direct", "hello")


async def test_nobody_hears_what_it_may_not_see() -> None:
    async with served() as world:
        await world.add("eve", "observer")
        await world.add("ann", "base_multi_agent")
        who, eve = await world.headers(), await world.headers("eve")
        assert (await world.http.get("/v1/stream?channel=c", headers=eve)).status_code == 403
        async with world.listen(eve) as ear, world.listen(who) as all_ears:
            secret = await world.call(who, "message:publish", {"channel": "c", "data": 1})
            assert secret.json() == {"delivered": 1}
            world.desk.kernel.delivery.publish("system:health", {}, "operator")
            assert [(await all_ears.event())[0] for _ in "12"] == [
                "message:publish",
                "system:health",
            ]
            name, data = await ear.event()
            assert (name, data["seq"]) == ("system:health", 1)


@pytest.mark.parametrize("query", ["?pattern=*a", "?pattern=", "?channel=", "?paterns=a", "?x=1"])
async def test_a_wrong_question_is_refused_before_the_stream_opens(query: str) -> None:
    async with served() as world:
        answer = await world.http.get(f"/v1/stream{query}", headers=await world.headers())
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_data")
        assert world.face.stats.streams == 0


async def _token(world: World, name: str) -> tuple[dict[str, str], str]:
    made = await world.desk.ask("operator", "key:token", {"name": name, "expires_in": 3600})
    return {"Authorization": f"Bearer {made['token']}"}, made["id"]


async def test_a_stream_ends_when_its_token_is_revoked_and_only_that() -> None:
    async with served() as world:
        await world.add("eve", "observer")
        (eve, token), (other, _) = await _token(world, "eve"), await _token(world, "eve")
        async with world.listen(eve) as cut, world.listen(other):
            assert world.face.stats.streams == 2
            await world.desk.ask("operator", "key:revoke_token", {"id": token})
            await cut.ends()
            assert world.face.stats.streams == 1


async def test_a_stream_ends_when_its_reader_is_shut_out() -> None:
    async with served() as world:
        await world.add("eve", "observer")
        async with world.listen(await world.headers("eve")) as ear:
            await world.desk.ask("operator", "key:revoke", {"name": "eve"})
            await ear.ends()
        assert world.desk.kernel.service(Mailbox).connections("eve") == 0


async def test_a_stream_ends_at_the_time_of_its_token() -> None:
    async with served() as world:
        await world.add("eve", "observer")
        async with world.listen(await world.headers("eve", expires_in=1)) as ear:
            await ear.ends()


async def test_a_reader_that_goes_away_is_forgotten() -> None:
    async with served() as world:
        who = await world.headers()
        async with world.listen(who, "?pattern=state:*"):
            assert world.desk.kernel.service(Mailbox).connections("operator") == 1
        with anyio.fail_after(PATIENCE):
            while world.face.stats.streams:
                await world.call(who, "state:set", {"key": "a", "value": 1})
        assert world.desk.kernel.service(Mailbox).connections("operator") == 0


async def test_one_client_has_only_so_many_streams() -> None:
    async with served(limits=HttpLimits(streams=2, drain_seconds=1)) as world:
        who = await world.headers()
        async with world.listen(who), world.listen(who):
            third = await world.http.get("/v1/stream", headers=who)
            assert (third.status_code, third.headers["retry-after"]) == (429, "1")


async def test_a_reader_that_does_not_read_misses_events_is_told_so_and_delays_nobody() -> None:
    limits = HttpLimits(backlog=4, backlog_bytes=1 << 20, drain_seconds=1)
    async with served(limits=limits) as world:
        who = await world.headers()
        async with world.listen(who, "?channel=c") as ear:
            for number in range(50):  # nothing is awaited: no stream can send meanwhile
                world.desk.kernel.delivery.publish_on("c", number, "operator")
            heard = [await ear.event() for _ in range(5)]
        assert [data["data"]["data"] for _, data in heard[:4]] == [0, 1, 2, 3]
        assert heard[4] == ("gap", {"missed": 46})
        assert world.face.stats.dropped == 46


async def test_a_reader_that_never_reads_is_cut() -> None:
    limits = HttpLimits(write_seconds=0.2, drain_seconds=1)
    async with served(limits=limits) as world:
        token = await world.token()
        async with world.raw() as stream:
            head = f"GET /v1/stream?channel=c HTTP/1.1\r\n{HOST}\r\nAuthorization: Bearer {token}"
            await stream.send(head.encode() + b"\r\n\r\n")
            await stream.receive()
            with anyio.fail_after(PATIENCE):
                while world.face.stats.streams:
                    world.desk.kernel.delivery.publish_on("c", "x" * 60_000, "operator")
                    await anyio.lowlevel.checkpoint()
            assert world.face.stats.cut >= 1
            await everything(stream)


async def test_a_stuck_reader_is_cut_when_it_is_shut_out() -> None:
    async with served(limits=HttpLimits(write_seconds=600, drain_seconds=1)) as world:
        await world.add("ann", "base_multi_agent")
        token = await world.token("ann")
        async with world.raw() as stream:
            head = f"GET /v1/stream?channel=c HTTP/1.1\r\n{HOST}\r\nAuthorization: Bearer {token}"
            await stream.send(head.encode() + b"\r\n\r\n")
            await stream.receive()
            with anyio.fail_after(PATIENCE):
                while not world.face.stats.dropped:
                    world.desk.kernel.delivery.publish_on("c", "x" * 60_000, "operator")
                    await anyio.lowlevel.checkpoint()
                await world.desk.ask("operator", "key:revoke", {"name": "ann"})
                while world.face.stats.streams:
                    await anyio.lowlevel.checkpoint()
            await everything(stream)
