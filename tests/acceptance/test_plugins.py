"""Handlers of one's own in a running daemon: what they may do, and what they cannot break."""

from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
from tests.acceptance.plugin import CAPABILITY, TEXT
from tests.acceptance.site import Daemon, Site, new_site

import remit_client
from remit_client import Client, Internal, Progress, RemitError, Timeout

BROKEN = """
from remit.kernel.dispatch.registry import event_handler

@event_handler("half:done", capability="lab")
def done() -> None:
    '''Be registered before the module fails.'''

import no_such_module_anywhere
"""


def with_plugin(site: Site, **settings: object) -> Site:
    site.add_module("lab", TEXT)
    site.catalogue.write_text(site.catalogue.read_text() + CAPABILITY)
    site.configure(**{"handlers": ["lab"], "handler_paths": ["."]} | settings)
    return site


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with new_site() as site:
        site.add_module("half", BROKEN)
        site.add_module("leaving", "raise SystemExit('this script was not meant to be imported')")
        modules = ["lab", "half", "leaving", "no_such_plugin"]
        with with_plugin(site, handlers=modules).serving() as daemon:
            yield daemon


@pytest.fixture
async def remit(daemon: Daemon) -> AsyncIterator[Client]:
    with anyio.fail_after(20):
        async with remit_client.connect(home=daemon.home) as client:
            yield client


@pytest.mark.parametrize("event", ["lab:fail", "lab:fail_now"])
async def test_a_bug_is_told_as_an_id_that_the_log_knows_and_nothing_more(
    daemon: Daemon, remit: Client, event: str
) -> None:
    with pytest.raises(Internal) as caught:
        await remit.call(event)
    told = f"{caught.value} {caught.value.details}"
    assert "secret" not in told
    assert "Traceback" not in told
    error_id = caught.value.details["error_id"]
    line = next(line for line in daemon.log().splitlines() if f'"error_id": "{error_id}"' in line)
    assert event in line
    assert "a secret of the inside" in line
    assert (await remit.call("system:health"))["status"] == "ok"


async def test_a_handler_that_exits_does_not_end_the_daemon(remit: Client) -> None:
    with pytest.raises(Internal):
        await remit.call("lab:exit")
    assert (await remit.call("system:health"))["status"] == "ok"


async def test_a_handler_that_takes_too_long_is_stopped(remit: Client) -> None:
    with pytest.raises(Timeout) as caught:
        await remit.call("lab:short")
    assert "lab:short did not finish within 0.05 s" in caught.value.message


async def test_a_time_out_of_somebody_else_is_not_the_requests_own(remit: Client) -> None:
    with pytest.raises(Internal):
        await remit.call("lab:own_timeout")


async def test_an_answer_that_cannot_be_sent_is_a_failure_of_its_handler(remit: Client) -> None:
    with pytest.raises(Internal):
        await remit.call("lab:unencodable")
    assert (await remit.call("system:health"))["status"] == "ok"


async def test_progress_arrives_in_order_before_the_answer(remit: Client) -> None:
    seen: list[Progress] = []
    assert await remit.call("lab:count", {"to": 3}, on_progress=seen.append) == {"counted": 3}
    assert [(p.done, p.total, p.message) for p in seen] == [
        (1, 3, "step 1"),
        (2, 3, "step 2"),
        (3, 3, "step 3"),
    ]


@pytest.mark.parametrize("event", ["lab:wait", "lab:block"])
async def test_a_caller_that_gives_up_frees_the_daemon(remit: Client, event: str) -> None:
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            await remit.call(event, {"seconds": 2}, on_progress=lambda _: started.set())

        tasks.start_soon(ask)
        await started.wait()
        tasks.cancel_scope.cancel()
    assert (await remit.call("system:health"))["status"] == "ok"


async def test_the_callers_own_time_out_is_told_as_one(remit: Client) -> None:
    with pytest.raises(Timeout):
        await remit.call("lab:wait", {"seconds": 30}, timeout=0.1)


async def test_a_plugin_that_fails_to_load_is_reported_and_none_of_its_events_exist(
    daemon: Daemon, remit: Client
) -> None:
    log = [line for line in daemon.log().splitlines() if "handlers_not_loaded" in line]
    half, leaving, missing = log
    assert f"{daemon.site.folder}/half.py:8" in half
    assert "no_such_module_anywhere" in half
    assert "not meant to be imported" in leaving
    assert "no_such_plugin" in missing
    with pytest.raises(remit_client.UnknownEvent):
        await remit.call("half:done")
    found = await remit.call("system:discover", {"level": "full", "namespace": "half"})
    assert found["total"] == 0
    assert await remit.call("lab:count", {"to": 1}) == {"counted": 1}


def test_a_broken_plugin_is_a_finding_of_doctor_and_check(daemon: Daemon) -> None:
    doctor = daemon.site.run("doctor")
    assert doctor.returncode == 1
    assert "half.py:8" in doctor.stdout
    assert "half.py:8" in daemon.site.run("check").stderr


async def test_a_request_that_is_under_way_is_answered_before_the_daemon_stops(
    site: Site,
) -> None:
    with_plugin(site)
    daemon = site.start()
    try:
        with anyio.fail_after(20):
            async with remit_client.connect(home=site.home) as remit:

                def stop(_: Progress) -> None:
                    daemon.process.terminate()

                data = {"seconds": 0.3}
                assert await remit.call("lab:wait", data, on_progress=stop) == {"waited": 0.3}
            assert await anyio.to_thread.run_sync(daemon.process.wait, 10) == 0
    finally:
        daemon.kill()


@pytest.mark.parametrize("event", ["lab:wait", "lab:block"])
async def test_a_request_that_does_not_end_cannot_hold_up_the_stop(site: Site, event: str) -> None:
    with_plugin(site, drain_timeout=0.2)
    daemon = site.start()
    try:
        with anyio.fail_after(20):
            async with remit_client.connect(home=site.home) as remit:
                with pytest.raises(RemitError) as caught:
                    await remit.call(
                        event, {"seconds": 60}, on_progress=lambda _: daemon.process.terminate()
                    )
                assert caught.value.code in {"cancelled", "connection_lost"}
            assert await anyio.to_thread.run_sync(daemon.process.wait, 5) == 0
    finally:
        daemon.kill()
