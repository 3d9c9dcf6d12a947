"""Slow subscribers and storms: `python tools/drills/subscribers.py [--subscribers N] [--json]`.

First a crowd of subscribers, one of which is a stopped process that never reads: all others must
hear everything in order, the daemon's memory must stay within its queues, and the one must be told
how many it missed as soon as it reads again. Then a storm: many publishers at once, far more than
any queue holds, at listeners of which two do not read. The daemon must answer its health all the
time, and heard and told to be missed must make up everything that was said, for every listener.
"""

import resource
import sys
import time
from contextlib import suppress
from typing import Any

import anyio
import zmq
from audience import Crowd, Pulse
from cast import add_client, connect, resident
from sleeper import Sleeper, in_order
from stage import Daemon, Stage, arguments, new_folder, report

from remit_client import Client
from remit_client.keys import Key

DESCRIPTORS_EACH = 6
DESCRIPTORS_SPARE = 500
OVERFLOW = 900
"""Messages of `SIZE` that no queue before one subscriber holds, the kernel's included."""
BURST = 25
SIZE = 2000
AFTERWARDS = 10
PUBLISHERS = 20
LISTENERS = 20
SLEEPERS = 2
SLACK_MB = 48.0
"""What Python and libzmq may hold besides the queues: pages that malloc keeps."""
BACKLOG_MESSAGES = 512
HIGH_WATER = 128
CATALOGUE = """\
version: 1
capabilities:
  base: {description: For everybody, event_patterns: [system:health], always_included: true}
  talk:
    description: Say and hear
    event_patterns: [message:publish, event:subscribe, event:unsubscribe]
"""


class Drill:
    """What was said, heard, missed and told."""

    def __init__(self, stage: Stage, daemon: Daemon) -> None:
        self.stage = stage
        self.daemon = daemon
        self.problems: list[Any] = []
        self.figures: dict[str, Any] = {}

    async def run(self, subscribers: int, messages: int, storm: int, seconds: float) -> None:
        """First the crowd, then the storm."""
        with anyio.move_on_after(seconds) as limit:
            await self.crowd(subscribers, messages)
            await self.storm(storm)
        if limit.cancelled_caught:
            self.problems.append(f"not done within {seconds:g} s")

    async def crowd(self, subscribers: int, messages: int) -> None:
        """A thousand who read, but for one."""
        async with connect(self.stage) as operator, anyio.create_task_group() as tasks:
            crowd = Crowd(subscribers - 1)
            keys = await _keys(operator, subscribers, "reader")
            sleeper = Sleeper(self.stage.folder, self.stage.home, keys.pop())
            try:
                # At once: a connection that is idle and silent ends with its heartbeats, a full one
                # does not.
                first = await self._publish(operator, None, OVERFLOW)
                for reader, key in zip(crowd.readers, keys, strict=True):
                    tasks.start_soon(reader.listen, self.stage, key, crowd)
                await crowd.all_here()
                before = resident(self.daemon)
                published = await self._publish(operator, crowd, messages, first=first)
                self._judge_memory("grown", before, full=1, waiting=subscribers * BURST)
                dropped = (await operator.call("system:stats"))["dropped"]
                asleep = await anyio.to_thread.run_sync(sleeper.wake, published)
                await self._publish(operator, crowd, AFTERWARDS, first=published)
            finally:
                sleeper.kill()
            self._judge_account("the one that slept", asleep, published)
            self._judge_crowd(crowd, range(first, published + AFTERWARDS))
            if dropped != asleep["missed"] or not dropped:
                self.problems.append(("counted", dropped, "told", asleep["missed"]))
            self.figures |= {"subscribers": subscribers, "messages": messages + AFTERWARDS}
            self.figures |= {"asleep_heard": asleep["heard"], "asleep_missed": asleep["missed"]}
            self.figures |= {"dropped": dropped, "connected_mb": round(before, 1)}
            tasks.cancel_scope.cancel()

    async def _publish(
        self, operator: Client, crowd: Crowd | None, messages: int, *, first: int = 0
    ) -> int:
        """Say so much, never more at once than those who read can take."""
        for number in range(messages):
            await _say(operator, "operator", first + number)
            if crowd is not None and ((number + 1) % BURST == 0 or number + 1 == messages):
                crowd.wanted += number % BURST + 1
                await crowd.all_heard(crowd.wanted)
        return first + messages

    def _judge_crowd(self, crowd: Crowd, said: range) -> None:
        for number, one in enumerate(crowd.readers):
            heard = [what for _, _, what in one.heard]
            if heard != list(said) or one.events.missed or not in_order(one.heard):
                self.problems.append((f"reader{number}", len(heard), one.events.missed))

    def _judge_memory(self, name: str, before: float, *, full: int, waiting: int = 0) -> None:
        """Whether the daemon has grown by no more than what its queues may hold.

        Args:
            name: what the figure is called.
            before: the memory before, in MB.
            full: how many connections may have full queues.
            waiting: how many messages wait elsewhere.
        """
        grown = resident(self.daemon) - before
        queues = full * (BACKLOG_MESSAGES + HIGH_WATER) * SIZE / 1e6
        allowed = queues + waiting * SIZE / 1e6 + SLACK_MB
        self.figures |= {f"{name}_mb": round(grown, 1), f"{name}_allowed_mb": round(allowed, 1)}
        if grown > allowed:
            self.problems.append((name, "memory grew by", grown, "MB, allowed", allowed))

    def _judge_account(self, who: str, account: dict[str, Any], published: int) -> None:
        is_whole = account["heard"] + account["missed"] == published
        if not is_whole or not account["in_order"] or account["interruptions"]:
            self.problems.append((who, account, "of", published))

    async def storm(self, messages: int) -> None:
        """Everybody talks at once."""
        async with connect(self.stage) as operator, anyio.create_task_group() as tasks:
            before = (await operator.call("system:stats"))["dropped"]
            crowd = Crowd(LISTENERS)
            for reader, key in zip(
                crowd.readers, await _keys(operator, LISTENERS, "listener"), strict=True
            ):
                tasks.start_soon(reader.listen, self.stage, key, crowd)
            keys = await _keys(operator, SLEEPERS, "sleeper")
            sleepers = [Sleeper(self.stage.folder, self.stage.home, key) for key in keys]
            try:
                await crowd.all_here()
                memory = resident(self.daemon)
                with Pulse(self.stage) as pulse:
                    delivered = await self._blow(operator, messages)
                full, waiting = LISTENERS + SLEEPERS, PUBLISHERS * HIGH_WATER
                self._judge_memory("storm", memory, full=full, waiting=waiting)
                await crowd.all_heard(messages)
                accounts = [await anyio.to_thread.run_sync(one.wake, messages) for one in sleepers]
            finally:
                for one in sleepers:
                    one.kill()
            accounts += [one.account() for one in crowd.readers]
            dropped = (await operator.call("system:stats"))["dropped"] - before
            self._judge_storm(accounts, messages, delivered, dropped)
            self.problems += pulse.problems
            self.figures |= {
                "storm_messages": messages,
                "storm_delivered": delivered,
                "storm_dropped": dropped,
                "health_answers": pulse.answers,
                "slowest_health_ms": round(pulse.slowest * 1000, 1),
            }
            tasks.cancel_scope.cancel()

    async def _blow(self, operator: Client, messages: int) -> int:
        delivered = 0

        async def publish(name: str, key: Key, count: int) -> None:
            async def say(number: int) -> None:
                nonlocal delivered
                told = await _say(remit, name, number)
                delivered += told

            async with connect(self.stage, key) as remit, anyio.create_task_group() as saying:
                for number in range(count):
                    saying.start_soon(say, number)

        async with anyio.create_task_group() as tasks:
            keys = await _keys(operator, PUBLISHERS, "publisher")
            for place, key in enumerate(keys):
                share = messages // PUBLISHERS + (place < messages % PUBLISHERS)
                tasks.start_soon(publish, key.name, key, share)
        return delivered

    def _judge_storm(
        self, accounts: list[dict[str, Any]], messages: int, delivered: int, dropped: int
    ) -> None:
        for number, account in enumerate(accounts):
            self._judge_account(f"listener {number}", account, messages)
        missed = sum(account["missed"] for account in accounts)
        self.figures["untold"] = (
            len(accounts) * messages - missed - sum(account["heard"] for account in accounts)
        )
        # A client's own queue may drop too, and counts that in the same place.
        if dropped > missed or delivered + dropped != len(accounts) * messages:
            self.problems.append(("delivered", delivered, "dropped", dropped, "told", missed))
        if not dropped:
            self.problems.append("nothing was dropped: say more messages")


async def _say(remit: Client, name: str, number: int) -> int:
    data = {"from": name, "number": number, "text": "x" * SIZE}
    said = await remit.call("message:publish", {"channel": "all", "data": data}, timeout=60)
    return int(said["delivered"])


async def _keys(operator: Client, count: int, stem: str) -> list[Key]:
    found: list[Key] = []

    async def add(name: str) -> None:
        found.append(await add_client(operator, name, "talker"))

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(add, f"{stem}{number}")
    return found


def make_room(subscribers: int) -> int:
    """Raise the limit of descriptors, here and for the daemon; answers how many subscribers fit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = subscribers * DESCRIPTORS_EACH + DESCRIPTORS_SPARE
    room = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    zmq.Context.instance().set(zmq.MAX_SOCKETS, 4 * subscribers + DESCRIPTORS_SPARE)
    return min(subscribers, (soft - DESCRIPTORS_SPARE) // DESCRIPTORS_EACH)


def main() -> int:
    """Run the drill in a folder of its own."""
    given = arguments(
        "Subscribers that do not read, and storms.",
        subscribers=1000,
        messages=200,
        storm=10_000,
        seconds=300.0,
    )
    began = time.monotonic()
    subscribers = make_room(given.subscribers)
    with new_folder() as folder:
        stage = Stage(folder)
        stage.configure()
        stage.catalogue(CATALOGUE)
        stage.profile("talker", "capabilities: [talk]\n")
        daemon = stage.start()
        drill = Drill(stage, daemon)
        try:
            anyio.run(drill.run, subscribers, given.messages, given.storm, given.seconds)
            code, _ = daemon.terminate()
        finally:
            daemon.kill()
    if code:
        drill.problems.append(f"the daemon ended with {code}")
    figures = {"drill": "subscribers", "seconds": round(time.monotonic() - began, 1)}
    return report(figures | drill.figures | {"exit": code}, drill.problems, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
