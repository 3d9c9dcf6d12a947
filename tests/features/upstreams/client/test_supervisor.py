"""How a server is started, watched, restarted and ended."""

import json
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs
from tests.features.upstreams.client.clients import QUICK, ended, faulty, lives, running

from remit.errors import UnavailableError
from remit.features.upstreams.client.state import ClientLimits
from remit.model.upstream import Upstream

pytestmark = pytest.mark.anyio

PATIENT = ClientLimits(first_pause=60, longest_pause=60, stop_seconds=0.2)


async def test_a_lazy_server_starts_with_the_first_call() -> None:
    async with running(faulty("shows-itself")) as one:
        await anyio.wait_all_tasks_blocked()
        assert one.state == "idle"
        await one.text("show")
        health = one.client.health
        assert (health.state, health.protocol, health.server_info) == (
            "ready",
            "2025-11-25",
            "raw 1.2",
        )
        assert (health.calls, health.failures, health.restarts) == (1, 0, 0)
        assert health.latency is not None
        assert len(one.listings) == 1
    assert one.state == "stopped"
    with pytest.raises(UnavailableError, match="not kept any more"):
        await one.client.call("show", {})


async def test_an_eager_server_starts_at_once() -> None:
    async with running(faulty("shows-itself", start="eager")) as one:
        await one.listed()
        assert one.state == "ready"


@pytest.mark.parametrize("fault", ["never-greets", "babbles"])
async def test_nobody_waits_longer_than_the_start_may_take(fault: str) -> None:
    async with running(faulty(fault, start_timeout=0.5), limits=PATIENT) as one:
        with anyio.fail_after(10), pytest.raises(UnavailableError) as caught:
            await one.client.call("any", {})
        await one.turned("failing")
        assert "did not start within 0.5 s" in one.client.health.reason
        assert "start" in caught.value.details["reason"]


async def test_while_a_restart_is_put_off_calls_fail_at_once_and_say_when_to_come_back() -> None:
    async with running(faulty("exits"), limits=PATIENT) as one:
        with pytest.raises(UnavailableError):
            await one.client.call("any", {})
        await one.turned("failing")
        before = one.client.health.restarts
        with anyio.fail_after(1), pytest.raises(UnavailableError) as caught:
            await one.client.call("any", {})
        assert 25 < caught.value.details["retry_after"] <= 60
        assert one.client.health.restarts == before


async def test_a_refresh_does_not_wait_for_a_restart_that_is_put_off() -> None:
    secrets: dict[str, str] = {}
    upstream = faulty("shows-itself", secret_env={"TOKEN": "KEY"})
    async with running(upstream, limits=PATIENT, secrets=secrets) as one:
        with pytest.raises(UnavailableError):
            await one.client.call("show", {})
        await one.turned("failing")
        secrets["KEY"] = "found it"
        with anyio.fail_after(20):
            listing = await one.client.refresh()
        assert [tool.name for tool in listing.tools] == ["show"]


async def test_a_server_that_ends_at_once_is_told_by_its_last_line_without_its_secret() -> None:
    upstream = faulty("exits", secret_env={"TOKEN": "WEATHER_KEY"})
    with capture_logs() as logs:
        async with running(upstream, secrets={"WEATHER_KEY": "hunter2-hunter2"}) as one:
            with pytest.raises(UnavailableError) as caught:
                await one.client.call("any", {})
    reason = caught.value.details["reason"]
    assert reason.startswith("it exited with code 2: bad key *** given!!!")
    assert len(reason) < 400
    assert "hunter2" not in json.dumps([logs, str(caught.value), one.client.health.last_error])


async def test_a_secret_stays_out_of_everything_that_a_server_says() -> None:
    heard: list[str] = []
    upstream = faulty("reports", secret_env={"TOKEN": "KEY"})
    async with running(upstream, secrets={"KEY": "hunter2-hunter2"}) as one:
        outcome = await one.client.call("work", {}, progress=lambda *told: heard.append(told[2]))
    assert heard == ["step ***", "step ***"]
    assert outcome.content[0]["text"] == "the token is ***"
    assert outcome.structured_content == {"***": ["***"]}
    assert one.listings[0].tools[0].description == "Uses ***."


async def test_a_missing_secret_keeps_a_server_from_starting() -> None:
    upstream = faulty("shows-itself", secret_env={"TOKEN": "NOWHERE"})
    async with running(upstream, limits=PATIENT) as one:
        with pytest.raises(UnavailableError, match="the secret NOWHERE is not set"):
            await one.client.call("show", {})
        assert one.client.health.reason == "the secret NOWHERE is not set"


async def test_a_server_gets_its_own_variables_and_few_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAEMON_SECRET", "x")
    upstream = faulty(
        "shows-itself", env={"REGION": "eu"}, secret_env={"TOKEN": "KEY"}, cwd=str(tmp_path)
    )
    async with running(upstream, secrets={"KEY": "abc"}) as one:
        shown = json.loads(await one.text("show"))
    assert shown["env"]["REGION"] == "eu"
    assert shown["env"]["TOKEN"] == "abc"  # noqa: S105 - too short to be told from other text
    assert shown["env"]["PATH"] == os.environ["PATH"]
    assert "DAEMON_SECRET" not in shown["env"]
    assert shown["cwd"] == str(tmp_path)


@pytest.mark.parametrize(
    ("upstream", "reason"),
    [
        (
            Upstream(name="outside", command="no-such-program"),
            "there is no program no-such-program",
        ),
        (faulty("slow", cwd="/no/such/folder"), "it cannot be started"),
    ],
)
async def test_what_cannot_be_started_says_so(upstream: Upstream, reason: str) -> None:
    async with running(upstream, limits=PATIENT) as one:
        with pytest.raises(UnavailableError, match=reason):
            await one.client.call("any", {})


async def test_a_server_that_fails_is_tried_again_and_again() -> None:
    async with running(faulty("exits", start="eager")) as one:
        await one.until(lambda health: health.restarts == 4)


async def test_a_server_that_ends_at_a_greeting_it_does_not_know_is_greeted_the_old_way() -> None:
    async with running(faulty("dislikes-discovery"), limits=PATIENT) as one:
        assert await one.text("one") == "done"
        assert one.client.health.protocol == "2024-11-05"


async def test_everything_that_a_server_started_ends_with_the_link() -> None:
    async with running(faulty("stubborn")) as one:
        pids = [int(pid) for pid in (await one.text("pids")).split()]
        assert all(map(lives, pids))
    await ended(*pids)


async def test_a_server_that_screams_is_served_and_logged_a_little() -> None:
    with capture_logs() as logs:
        async with running(faulty("screams")) as one:
            assert await one.text("one") == "done"
    assert 0 < len(logs) < 30


async def test_a_launcher_stands_before_the_command() -> None:
    guard = (sys.executable, "-c", "import os,sys; os.execv(sys.argv[1], sys.argv[1:])")
    async with running(faulty("shows-itself"), guard=guard) as one:
        await one.text("show")


async def test_a_server_that_is_killed_while_idle_comes_back_alone() -> None:
    async with running(faulty("dies")) as one:
        pid = int(await one.text("pid"))
        os.kill(pid, signal.SIGKILL)
        await one.until(lambda health: health.restarts > 0)
        await one.turned("ready")
        assert one.client.health.last_error == "it was ended by signal 9"
        assert len(one.listings) == 2


async def test_a_listener_that_fails_harms_no_server() -> None:
    async with running(faulty("dies"), limits=QUICK) as one:

        async def fail(_: object) -> None:
            raise ValueError("a bug")

        one.client._supervisor._on_listed = fail
        with capture_logs() as logs:
            await one.text("pid")
            await one.client.refresh()
        assert one.state == "ready"
        assert "upstream_list_not_taken" in [entry["event"] for entry in logs]
