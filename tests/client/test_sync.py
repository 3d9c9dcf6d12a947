"""The blocking client, in a thread beside the loop that serves it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.faces.zmq.world import until, world

from remit.faces.zmq.frames import PushFrame
from remit_client import ConnectionLost, Denied, Progress, Timeout, Unauthorised, Unreachable, sync
from remit_client.keys import Key, new_key


async def in_thread(work: Callable[[], object]) -> object:
    with anyio.fail_after(10):
        return await anyio.to_thread.run_sync(work)


async def test_it_calls_asks_and_checks(tmp_path: Path) -> None:
    def work(key: Key) -> None:
        with sync.connect(key=key) as remit:
            assert remit.call("test:echo", [1]) == [1]
            assert remit.ask("test:who").decision == "d-2"
            assert remit.allowed("state:get")
            assert not remit.allowed("agent:spawn")
            with pytest.raises(Denied):
                remit.call("test:denied")

    async with world(tmp_path) as served:
        key = served.key()
        await in_thread(lambda: work(key))


async def test_it_reports_progress_and_gives_up_in_time(tmp_path: Path) -> None:
    seen: list[Progress] = []

    def work(key: Key) -> None:
        with sync.connect(key=key) as remit:
            remit.call("test:steps", on_progress=seen.append)
            with pytest.raises(Timeout):
                remit.call("test:wait", timeout=0.05)

    async with world(tmp_path) as served:
        key = served.key()
        await in_thread(lambda: work(key))
        await until(lambda: served.door.cancelled == ["ann"])
    assert [progress.done for progress in seen] == [1.0, 2.0]


async def test_it_reads_pushed_events(tmp_path: Path) -> None:
    got: list[object] = []

    def work(key: Key) -> None:
        with sync.connect(key=key) as remit, remit.subscribe("message:*") as events:
            remit.call("test:who")
            got.append(next(events).data)
            got.append(events.wait(0.01))

    async with world(tmp_path) as served:
        key = served.key()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_thread, lambda: work(key))
            await until(lambda: "test:who" in served.door.seen)
            served.face.push("ann", PushFrame("message:news", 5, origin="bob", at=0.0))
    assert got == [5, None]


async def test_it_is_refused_and_finds_nobody_soon(tmp_path: Path) -> None:
    def work(stranger: Key, nobody: Key) -> None:
        with pytest.raises(Unauthorised), sync.connect(key=stranger):
            pass
        with pytest.raises(Unreachable), sync.connect(key=nobody):
            pass

    async with world(tmp_path) as served:
        stranger = served.stranger()
        nobody = new_key("n", server_key=stranger.server_key, endpoint=f"ipc://{tmp_path}/no")
        await in_thread(lambda: work(stranger, nobody))


def test_it_needs_neither_anyio_nor_the_daemon() -> None:
    code = (
        "import sys, remit_client.sync;"
        "sys.exit(bool({'anyio', 'asyncio', 'remit'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


def test_the_wire_structs_need_no_libzmq() -> None:
    code = "import sys, remit_client.wire; sys.exit('zmq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


async def test_it_loses_an_answer_aloud_and_renews_its_subscriptions(tmp_path: Path) -> None:
    got: list[object] = []

    def work(key: Key) -> None:
        with sync.connect(key=key) as remit, remit.subscribe("message:*") as events:
            with pytest.raises(ConnectionLost):
                remit.call("test:wait")
            got.append(next(events).data)
            got.append(events.interruptions)

    async with world(tmp_path) as served:
        key = served.key()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_thread, lambda: work(key))
            await until(lambda: served.face.stats.jobs == 1)
            served.face.evict("ann")
            await until(lambda: served.door.seen.count("event:subscribe") == 2)
            served.face.push("ann", PushFrame("message:news", 6, origin="bob", at=0.0))
    assert got == [6, 1]
