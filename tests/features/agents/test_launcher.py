"""Processes of agents: what may be started, what they know, and how they end."""

import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from remit.config.definitions.launchers import Commands
from remit.errors import DeniedError, InvalidDataError, RemitError
from remit.features.agents.launcher import Launcher, LaunchFolders
from remit.model.launch import Launch, LaunchEntry

LIMIT = 15


@asynccontextmanager
async def open_launcher(*allowed: str) -> AsyncGenerator[tuple[Launcher, list[str]]]:
    ended: list[str] = []
    commands = Commands(map(LaunchEntry.plain, allowed))
    with tempfile.TemporaryDirectory() as folder:
        async with anyio.create_task_group() as tasks:
            folders = LaunchFolders(Path(folder))
            yield Launcher(tasks, commands=commands, folders=folders, on_end=ended.append), ended
            tasks.cancel_scope.cancel()


def python(code: str, **more: object) -> Launch:
    return Launch(sys.executable, ("-c", code), **more)  # type: ignore[arg-type]


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(LIMIT):
        while not condition():  # noqa: ASYNC110 - a file and a foreign process set no event
            await anyio.sleep(0.01)


async def until_ended(launcher: Launcher, agent: str) -> str:
    def has_ended() -> bool:
        status = launcher.status(agent)
        return status is not None and status.state in ("exited", "failed")

    await until(has_ended)
    status = launcher.status(agent)
    assert status is not None
    return status.state


async def test_a_process_knows_who_it_is_and_gets_nothing_else_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUR_SECRET", "do-not-tell")
    code = "import os; print(os.environ['REMIT_AGENT_ID'], 'OUR_SECRET' in os.environ)"
    async with open_launcher(sys.executable) as (launcher, ended):
        launcher.start("ann", lambda: python(code), {"REMIT_AGENT_ID": "ann"})
        assert await until_ended(launcher, "ann") == "exited"
        status = launcher.status("ann")
        assert status is not None
        assert status.output == "ann False\n"
        assert ended == ["ann"]


@pytest.mark.parametrize(
    ("launch", "error"),
    [
        pytest.param(Launch("/bin/sh", ("-c", "true")), DeniedError, id="another-command"),
        pytest.param(Launch("no-such-command"), DeniedError, id="no-command"),
        pytest.param(python("", env={"LD_PRELOAD": "x"}), InvalidDataError, id="a-loader-variable"),
        pytest.param(python("", env={"REMIT_KEY": "x"}), InvalidDataError, id="an-identity"),
        pytest.param(python("", env={"A=B": "x"}), InvalidDataError, id="not-a-variable"),
        pytest.param(python("", env={"A\n": "x"}), InvalidDataError, id="not-quite-a-variable"),
        pytest.param(python("a\0b"), InvalidDataError, id="a-nul-byte"),
        pytest.param(python("", cwd="/no/such/folder"), InvalidDataError, id="no-folder"),
        pytest.param(Launch(ready="claude"), DeniedError, id="a-ready-launcher"),
        pytest.param(Launch(sys.executable, ready="claude"), InvalidDataError, id="two-commands"),
        pytest.param(Launch(args=("x",)), InvalidDataError, id="arguments-alone"),
    ],
)
async def test_what_the_operator_did_not_allow_is_not_started(
    launch: Launch, error: type[RemitError]
) -> None:
    async with open_launcher(sys.executable) as (launcher, _):
        with pytest.raises(error):
            launcher.check(launch)
        launcher.start("ann", lambda: launch, {})
        assert await until_ended(launcher, "ann") == "failed"
        status = launcher.status("ann")
        assert status is not None
        assert status.output.startswith("could not be started: ")


async def test_a_process_that_fails_is_started_again_up_to_its_bound(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'runs')!r}, 'a').write('x'); raise SystemExit(3)"
    async with open_launcher(sys.executable) as (launcher, _):
        launcher.start("ann", lambda: python(code, restart="on_failure", max_restarts=1), {})
        assert await until_ended(launcher, "ann") == "failed"
        status = launcher.status("ann")
        assert status is not None
        assert (status.exit_code, status.restarts) == (3, 1)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_output_is_bounded_and_the_newest_is_kept() -> None:
    code = "print('a' * 500_000); print('the end')"
    async with open_launcher(sys.executable) as (launcher, _):
        launcher.start("ann", lambda: python(code), {})
        await until_ended(launcher, "ann")
        status = launcher.status("ann")
        assert status is not None
        assert status.output.endswith("the end\n")
        assert len(status.output) <= 65_536


async def test_stopping_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} end')\n"
        "time.sleep(600)\n"
    )
    async with open_launcher(sys.executable) as (launcher, ended):
        launcher.start("ann", lambda: python(code), {})
        await until(lambda: pids.exists() and pids.read_text().endswith("end"))
        launcher.end("ann")
        for pid in map(int, pids.read_text().split()[:2]):
            await until(partial(_is_gone, pid))
        assert launcher.status("ann") is None
        assert ended == []


async def test_what_to_start_is_asked_for_anew_at_each_start() -> None:
    codes = iter(["print('first'); exit(1)", "print('second')"])
    async with open_launcher(sys.executable) as (launcher, _):
        launcher.start("ann", lambda: python(next(codes), restart="on_failure"), {})
        assert await until_ended(launcher, "ann") == "exited"
        status = launcher.status("ann")
        assert status is not None
        assert status.output == "first\nsecond\n"


async def test_an_end_is_noticed_while_something_else_holds_the_output(tmp_path: Path) -> None:
    kept = tmp_path / "pid"
    code = (
        "import subprocess, sys\n"
        "away = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\n"
        f"open({str(kept)!r}, 'w').write(str(away.pid))\n"
        "print('done')\n"
    )
    async with open_launcher(sys.executable) as (launcher, ended):
        launcher.start("ann", lambda: python(code), {})
        try:
            assert await until_ended(launcher, "ann") == "exited"
            assert ended == ["ann"]
        finally:
            os.kill(int(kept.read_text()), signal.SIGKILL)


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
