"""A client that is running for the length of a test, and what it told."""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from remit.features.upstreams.client.client import UpstreamClient
from remit.features.upstreams.client.state import ClientLimits, Health, Listing
from remit.model.upstream import Upstream

SERVERS = Path(__file__).parent / "servers"
QUICK = ClientLimits(first_pause=0.01, longest_pause=0.05, stop_seconds=0.2)


class RunningClient:
    """A client and its lists."""

    def __init__(
        self, upstream: Upstream, limits: ClientLimits, secrets: dict[str, str], **more: Any
    ) -> None:
        self.listings: list[Listing] = []
        self._listed = anyio.Event()
        self.client = UpstreamClient(
            upstream, secret=secrets.get, on_listed=self._on_listed, limits=limits, **more
        )

    async def _on_listed(self, listing: Listing) -> None:
        self.listings.append(listing)
        self._listed.set()
        self._listed = anyio.Event()

    async def listed(self, fits: Callable[[Listing], bool] = lambda _: True) -> Listing:
        """The first list from now or before that fits."""
        with anyio.fail_after(20):
            while not any(map(fits, self.listings)):
                await self._listed.wait()
        return next(filter(fits, self.listings))

    async def text(self, tool: str, **arguments: Any) -> str:
        """The first text that a tool answers."""
        with anyio.fail_after(20):
            outcome = await self.client.call(tool, arguments)
        return str(outcome.content[0]["text"])

    @property
    def state(self) -> str:
        """Its state now."""
        return self.client.health.state

    async def until(self, fits: Callable[[Health], bool]) -> None:
        """Wait until its health is so."""
        with anyio.fail_after(20):
            while not fits(self.client.health):
                await self.client._monitor.next_change()

    async def turned(self, state: str) -> None:
        """Wait for a state."""
        await self.until(lambda health: health.state == state)


def process(script: str, *args: str, **more: Any) -> Upstream:
    """An upstream that runs one of the scripts beside this file."""
    command = (str(SERVERS / f"{script}.py"), *args)
    return Upstream(name="outside", command=sys.executable, args=command, **more)


def faulty(fault: str, **more: Any) -> Upstream:
    """A server with a fault."""
    return process("misbehaving", fault, **more)


@asynccontextmanager
async def running(
    upstream: Upstream,
    *,
    limits: ClientLimits = QUICK,
    secrets: dict[str, str] | None = None,
    **more: Any,
) -> AsyncGenerator[RunningClient]:
    """A client that runs."""
    one = RunningClient(upstream, limits, {} if secrets is None else secrets, **more)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.client.run)
        yield one
        tasks.cancel_scope.cancel()


async def ended(*pids: int) -> None:
    """Wait until processes are gone; a zombie is."""
    with anyio.fail_after(10):
        while any(map(lives, pids)):  # noqa: ASYNC110 - the kernel tells only parents
            await anyio.sleep(0.01)


def lives(pid: int) -> bool:
    """Tell whether a process is there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
