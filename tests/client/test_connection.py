"""Connections that are refused, missing, lost and regained."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
import zmq
from anyio.abc import TaskStatus
from tests.faces.zmq.world import EchoDoor, People, until, world

import remit_client
from remit.faces.zmq.face import SocketFace, serve
from remit.faces.zmq.frames import PushFrame
from remit.faces.zmq.limits import SocketLimits
from remit_client import RemitError
from remit_client.client import LIST_NEWS
from remit_client.keys import Key, new_key


async def test_an_unknown_key_is_refused_soon(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        with anyio.fail_after(2), pytest.raises(remit_client.Unauthorised) as caught:
            async with remit_client.connect(key=served.stranger()):
                pass
    assert "remit key new" in caught.value.hint


async def test_a_wrong_server_key_is_refused_soon(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        key = served.key()
        wrong = new_key("x").public_key
        mistaken = Key(key.name, key.public_key, key.secret_key, wrong, key.endpoint)
        with anyio.fail_after(2), pytest.raises(remit_client.Unauthorised) as caught:
            async with remit_client.connect(key=mistaken):
                pass
    assert "server.pub" in caught.value.hint


@pytest.mark.parametrize("endpoint", ["ipc://{}/none.sock", "tcp://127.0.0.1:9"])
async def test_a_missing_daemon_is_reported_soon_with_the_way_to_start_it(
    tmp_path: Path, endpoint: str
) -> None:
    key = new_key("ann", server_key=new_key("s").public_key, endpoint=endpoint.format(tmp_path))
    with anyio.fail_after(2), pytest.raises(remit_client.Unreachable) as caught:
        async with remit_client.connect(key=key):
            pass
    assert "remit serve" in caught.value.hint


async def test_an_endpoint_that_is_none_is_refused_at_once() -> None:
    key = new_key("ann", server_key=new_key("s").public_key, endpoint="nonsense")
    with pytest.raises(remit_client.Unreachable):
        async with remit_client.connect(key=key):
            pass


async def code_of(call: Callable[..., Awaitable[object]], *args: object) -> str:
    """The code that a call fails with, or "" when it does not."""
    try:
        await call(*args)
    except RemitError as error:
        return error.code
    return ""


async def test_a_lost_answer_raises_and_the_request_is_not_repeated(tmp_path: Path) -> None:
    codes: list[str] = []
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:

        async def ask() -> None:
            codes.append(await code_of(remit.call, "test:wait"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until(lambda: served.face.stats.jobs == 1)
            served.face.evict("ann")
        assert codes == ["connection_lost"]
        assert await remit.call("test:who") == "ann"
        assert served.door.seen == ["test:wait", "test:who"]


async def test_a_revoked_client_hears_that_it_is_unauthorised(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        await remit.call("test:who")
        served.people.revoke("ann")
        served.face.evict("ann")
        with anyio.fail_after(5):
            while (code := await code_of(remit.call, "test:who")) != "unauthorised":
                assert code in ("connection_lost", "unreachable")


async def test_a_caller_that_tries_again_at_once_lets_the_loss_be_noticed(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        await remit.call("test:who")
        served.people.revoke("ann")
        served.face.evict("ann")
        # libzmq has noticed that the connection is gone; nothing else has had a chance to.
        while int(remit._dealer.socket.get(zmq.EVENTS)) & zmq.POLLOUT:
            pass
        codes = [await code_of(remit.call, "test:who") for _ in range(20)]
        assert codes[0] == "unreachable"
        assert codes[-1] == "unauthorised"


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_news_of_lists_outlives_a_connection_that_breaks_while_it_is_asked_for(
    tmp_path: Path, *, is_revoked: bool
) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        served.door.held.add(LIST_NEWS)

        async def cut() -> None:
            await until(lambda: served.face.stats.jobs == 1)
            served.door.held.discard(LIST_NEWS)
            if is_revoked:
                served.people.revoke("ann")
            served.face.evict("ann")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            async with remit.list_news() as news:
                if is_revoked:
                    with anyio.fail_after(5), pytest.raises(remit_client.Unauthorised):
                        await anext(news)
                else:
                    await until(lambda: served.door.seen == [LIST_NEWS, LIST_NEWS])


class Daemon:
    """A face that can be stopped and started at one endpoint."""

    def __init__(self, folder: Path) -> None:
        self._server = new_key("server")
        self.people = People()
        self.endpoint = f"ipc://{folder}/remit.sock"
        self._scope = anyio.CancelScope()
        self._stopped = anyio.Event()

    def key(self, name: str) -> Key:
        fresh = new_key(name, server_key=self._server.public_key, endpoint=self.endpoint)
        return self.people.register(fresh)

    async def run(self, door: EchoDoor, *, task_status: TaskStatus[SocketFace]) -> None:
        self._stopped = anyio.Event()
        with anyio.CancelScope() as self._scope:
            async with serve(
                door,
                self.people,
                endpoint=self.endpoint,
                server_key=self._server.secret_key,
                limits=SocketLimits(drain_seconds=0, linger_ms=0),
            ) as face:
                task_status.started(face)
                await anyio.sleep_forever()
        self._stopped.set()

    async def stop(self) -> None:
        self._scope.cancel()
        await self._stopped.wait()


async def test_a_client_finds_a_restarted_daemon_by_itself(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    ann = daemon.key("ann")
    async with anyio.create_task_group() as tasks:
        await tasks.start(daemon.run, EchoDoor())
        async with remit_client.connect(key=ann) as remit:
            assert await remit.call("test:who") == "ann"
            await daemon.stop()
            assert await code_of(remit.call, "test:who") in ("unreachable", "connection_lost")
            await tasks.start(daemon.run, EchoDoor())
            assert await remit.call("test:who") == "ann"
        await daemon.stop()


async def test_a_subscription_is_renewed_after_a_restart(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    ann = daemon.key("ann")
    async with anyio.create_task_group() as tasks:
        await tasks.start(daemon.run, EchoDoor())
        async with (
            remit_client.connect(key=ann) as remit,
            remit.subscribe("message:*") as events,
        ):
            await daemon.stop()
            door = EchoDoor()
            face = await tasks.start(daemon.run, door)
            await until(lambda: door.seen == ["event:subscribe"])
            face.push("ann", PushFrame("message:news", 1, origin="bob", at=0.0))
            with anyio.fail_after(5):
                assert (await anext(events)).data == 1
            assert events.interruptions == 1
        await daemon.stop()
