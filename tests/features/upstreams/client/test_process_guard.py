"""A server ends with a daemon that is killed."""

import json
import os
import signal
import subprocess
import sys

import anyio
import pytest
from tests.features.upstreams.client.clients import SERVERS, ended, lives

pytestmark = pytest.mark.anyio

DAEMON = """
import sys, anyio
from remit.model.upstream import Upstream
from remit.kernel.processes.guard import process_guard
from remit.features.upstreams.client.client import UpstreamClient

async def main():
    async def listed(_): pass
    upstream = Upstream(name="outside", command=sys.executable, args=tuple(sys.argv[1:]))
    guard = process_guard("test")
    client = UpstreamClient(upstream, secret=lambda _: None, on_listed=listed, guard=guard)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.run)
        outcome = await client.call("show", {})
        print(outcome.content[0]["text"], flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


async def test_a_killed_daemon_takes_its_servers_along() -> None:
    command = [sys.executable, "-c", DAEMON, str(SERVERS / "misbehaving.py"), "shows-itself"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:  # noqa: ASYNC220, S603
        assert daemon.stdout is not None
        with anyio.fail_after(20):
            shown = json.loads(await anyio.to_thread.run_sync(daemon.stdout.readline))
        session, owner = shown["env"]["REMIT_LAUNCHED"].split()
        assert owner == "test"
        assert lives(int(session))
        os.kill(daemon.pid, signal.SIGKILL)
    await ended(int(session))
