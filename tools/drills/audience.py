"""Who listens in a drill, and who feels the daemon's pulse meanwhile."""

import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
from cast import connect
from sleeper import in_order
from stage import PATIENCE, Stage

import remit_client.sync
from remit_client.errors import RemitError
from remit_client.inbox import Inbox
from remit_client.keys import Key

CONNECTING_AT_ONCE = 32
HEALTH_SECONDS = 10.0
_LOOK_SECONDS = 0.01


class Reader:
    """A subscriber that reads, and what it has heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str, int]] = []
        self.events = Inbox(())

    async def listen(self, stage: Stage, key: Key, crowd: "Crowd") -> None:
        """Read until cancelled."""
        async with AsyncExitStack() as stack:
            async with crowd.turns:
                remit = await stack.enter_async_context(connect(stage, key))
                events = await stack.enter_async_context(remit.subscribe("message:publish"))
            self.events = events
            crowd.here += 1
            async for push in events:
                said = push.data["data"]
                self.heard.append((push.seq, said["from"], said["number"]))

    @property
    def accounted(self) -> int:
        """How many messages it has heard, or was told to have missed."""
        return len(self.heard) + self.events.missed

    def account(self) -> dict[str, Any]:
        """What it heard and missed, as a sleeper tells it."""
        return {
            "heard": len(self.heard),
            "missed": self.events.missed,
            "interruptions": self.events.interruptions,
            "in_order": in_order(self.heard),
        }


class Crowd:
    """Readers that share this process."""

    def __init__(self, size: int) -> None:
        self.readers = [Reader() for _ in range(size)]
        self.turns = anyio.CapacityLimiter(CONNECTING_AT_ONCE)
        self.wanted = 0
        self.here = 0

    async def all_here(self) -> None:
        """Wait until everybody listens."""
        await self._until(lambda: self.here == len(self.readers))

    async def all_heard(self, published: int) -> None:
        """Wait until everybody has heard so much, or was told to have missed it."""
        await self._until(lambda: all(one.accounted >= published for one in self.readers))

    async def _until(self, is_so: Callable[[], bool]) -> None:
        # Running out of time is no error here: what is missing is found when all is counted.
        with anyio.move_on_after(2 * PATIENCE):
            while not is_so():  # noqa: ASYNC110 - a gap notice wakes nobody who could set an event
                await anyio.sleep(_LOOK_SECONDS)


class Pulse:
    """Asks for the daemon's health all the time, from a thread of its own."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.answers = 0
        self.slowest = 0.0
        self.problems: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Pulse":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join(2 * HEALTH_SECONDS)

    def _beat(self) -> None:
        try:
            with remit_client.sync.connect(home=self._stage.home) as remit:
                while not self._is_over.is_set():
                    began = time.monotonic()
                    remit.call("system:health", timeout=HEALTH_SECONDS)
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.answers += 1
        except RemitError as error:
            self.problems.append(f"health was not answered: {error}")
