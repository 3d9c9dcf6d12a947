"""Revoking under load: `python tools/drills/revoke.py [--rounds N] [--seconds S] [--json]`.

In each round an agent has 200 requests under way while others flood the daemon, and is revoked: by
its key, by `agent:terminate`, or with the agent that spawned it. A request counts as allowed late
when its handler ran after the revocation was acknowledged; the daemon's handlers write down when
they ran, on the clock that this process reads too. None may begin either once the daemon itself
knows the agent no more, which is a moment before that. Then the agent comes back, with its old
connections and with a new one (no face takes its bearer token yet). Every third round an ancestor
is narrowed instead, by an update and by a reload in turns, while its grandchildren are inside calls
that call on.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import anyio
from cast import add_client, connect, refusal_of, spawned_key
from stage import PATIENCE, Stage, arguments, new_folder, report

from remit_client import Client
from remit_client.errors import RemitError
from remit_client.keys import Key

REQUESTS = 200
FLOODERS = 3
FLOOD_IN_FLIGHT = 32
GRANDCHILDREN = 8
HOLD_SECONDS = 0.05
MOST_DELAY = 0.15
KINDS = cycle(["drill:look", "drill:touch", "drill:read", "drill:work"])
CATALOGUE = """\
version: 1
capabilities:
  base: {description: For everybody, event_patterns: [system:health], always_included: true}
  drill:
    description: What is asked all the time
    event_patterns: [drill:look, drill:touch, drill:read, drill:work, drill:relay]
  drill_secret: {description: The next hop, event_patterns: [drill:secret]}
  talk: {description: Hear others, event_patterns: [message:subscribe]}
  spawn: {description: Have children, event_patterns: [agent:spawn]}
"""
WORKER = "capabilities: [drill, drill_secret, talk, spawn]\n"
NARROWER = "capabilities: [drill, talk, spawn]\n"

Revoke = Callable[[], Awaitable[Any]]


class Drill:
    """What was asked, what was cut off, and what should not have happened."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.rounds = self.narrowed = self.asked = self.hops = self.flood = 0
        self.late = self.gone = self.entered = 0
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[Any] = []
        self.slowest = 0.0
        self.is_over = False
        self.dice = random.Random(7)  # noqa: S311 - a drill, to be repeated as it was

    async def run(self, rounds: int, seconds: float) -> None:
        """Flood, and revoke or narrow somebody in each round."""
        deadline = time.monotonic() + seconds
        async with connect(self.stage) as operator, anyio.create_task_group() as tasks:
            for number in range(FLOODERS):
                key = await add_client(operator, f"flooder{number}", "worker")
                tasks.start_soon(self._flood, key)
            for number in range(rounds):
                if time.monotonic() > deadline:
                    break
                if number % 3 == 2:  # noqa: PLR2004 - every third
                    await self._narrow(operator, number)
                else:
                    await self._revoke(operator, number)
            self.is_over = True

    async def _flood(self, key: Key) -> None:
        async def ask(remit: Client) -> None:
            while not self.is_over:
                event = next(KINDS)
                if code := await refusal_of(remit, event, _data_for(event, 0.0)):
                    self.wrong.append(("a flooder was refused", event, code))
                self.flood += 1

        async with connect(self.stage, key) as remit, anyio.create_task_group() as asking:
            for _ in range(FLOOD_IN_FLIGHT):
                asking.start_soon(ask, remit)

    # ---- revoked in the middle of its requests ----

    async def _revoke(self, operator: Client, number: int) -> None:
        async with AsyncExitStack() as stack:
            name, key, revoke = await self._victim(operator, number, stack)
            busy = await stack.enter_async_context(connect(self.stage, key))
            silent = await stack.enter_async_context(connect(self.stage, key))
            await busy.call("message:subscribe", {"channels": [name]})
            async with anyio.create_task_group() as tasks:
                for _ in range(REQUESTS):
                    tasks.start_soon(self._ask, busy, next(KINDS))
                await anyio.sleep(self.dice.uniform(0, MOST_DELAY))
                began = time.monotonic()
                await revoke()
                acknowledged = time.monotonic()
                self.slowest = max(self.slowest, acknowledged - began)
                await self._come_back(operator, name, key, [busy, silent])
            # Longer than any handler of a request that was under way would take.
            await anyio.sleep(2 * HOLD_SECONDS)
        await self._settle(operator, [name], acknowledged)
        self.rounds += 1

    async def _victim(
        self, operator: Client, number: int, stack: AsyncExitStack
    ) -> tuple[str, Key, Revoke]:
        """Somebody to be revoked, and how."""
        name = f"victim{number}"
        way = number % 4
        if way == 0:
            key = await add_client(operator, name, "worker")
            return name, key, lambda: operator.call("key:revoke", {"name": name})
        spawn = {"profile": "worker", "agent_id": name}
        ended, spawner = name, operator
        if way == 1:
            ended = f"parent{number}"
            above = await operator.call("agent:spawn", spawn | {"agent_id": ended})
            spawner = await stack.enter_async_context(connect(self.stage, spawned_key(above)))
        key = spawned_key(await spawner.call("agent:spawn", spawn))
        return name, key, lambda: operator.call("agent:terminate", {"agent_id": ended})

    async def _ask(self, remit: Client, event: str) -> None:
        self.asked += 1
        self.outcomes[await refusal_of(remit, event, _data_for(event)) or "answered"] += 1

    async def _come_back(
        self, operator: Client, name: str, key: Key, connections: list[Client]
    ) -> None:
        """Try every way in: the old connections, one that never spoke, a new one."""
        for remit in connections:
            if not await refusal_of(remit, "drill:look"):
                self._enter(name, "an old connection")
        try:
            async with connect(self.stage, key) as remit:
                await remit.call("drill:look")
                self._enter(name, "a new connection")
        except RemitError as error:
            self.outcomes[f"reconnect_{error.code}"] += 1
        said = await operator.call("message:publish", {"channel": name, "data": "hello"})
        if said["delivered"]:
            self._enter(name, "a message")

    def _enter(self, name: str, way: str) -> None:
        self.entered += 1
        self.wrong.append((name, "came back by", way))

    async def _settle(self, operator: Client, names: list[str], since: float) -> int:
        counted = await operator.call("drill:runs", {"agents": names, "since": since})
        self.late += counted["late"]
        self.gone += counted["gone"]
        if counted["late"] or counted["gone"]:
            self.wrong.append((names[0], "ran late", counted))
        return int(counted["runs"])

    # ---- an ancestor narrowed in the middle of a call that calls on ----

    async def _narrow(self, operator: Client, number: int) -> None:
        lead, by_reload = f"lead{number}", number % 2 == 0
        async with AsyncExitStack() as stack:
            family = await self._family(operator, lead, stack)
            answers: list[Any] = []
            async with anyio.create_task_group() as tasks:
                for remit in family.values():
                    tasks.start_soon(self._relay, remit, answers)
                await anyio.sleep(self.dice.uniform(0.02, 0.02 + MOST_DELAY))
                await (self._reload(operator, NARROWER) if by_reload else _take(operator, lead))
                acknowledged = time.monotonic()
            for remit in family.values():
                if await refusal_of(remit, "drill:secret") != "denied":
                    self._enter(lead, "a grandchild that kept what was taken")
        if [one["code"] for one in answers] != ["denied"] * len(family):
            self.wrong.append((lead, "relays ended with", answers))
        self.hops += await self._settle(operator, list(family), acknowledged)
        self.narrowed += 1
        await operator.call("agent:terminate", {"agent_id": lead})
        await self._reload(operator, WORKER)

    async def _family(
        self, operator: Client, lead: str, stack: AsyncExitStack
    ) -> dict[str, Client]:
        """A lead, its child, and connections of the grandchildren."""
        remit = operator
        for name, profile in ((lead, "lead"), (f"{lead}-child", "worker")):
            spawned = await remit.call("agent:spawn", {"profile": profile, "agent_id": name})
            remit = await stack.enter_async_context(connect(self.stage, spawned_key(spawned)))
        family = {}
        for number in range(GRANDCHILDREN):
            spawn = {"profile": "worker", "agent_id": f"{lead}-{number}"}
            key = spawned_key(await remit.call("agent:spawn", spawn))
            family[key.name] = await stack.enter_async_context(connect(self.stage, key))
        return family

    async def _relay(self, remit: Client, answers: list[Any]) -> None:
        try:
            answers.append(await remit.call("drill:relay", timeout=PATIENCE))
        except RemitError as error:
            answers.append({"code": f"the relay itself: {error.code}"})

    async def _reload(self, operator: Client, lead: str) -> None:
        self.stage.profile("lead", lead)
        await operator.call("config:reload")

    def figures(self, seconds: float) -> dict[str, Any]:
        """The one line."""
        return {
            "drill": "revoke",
            "seconds": round(seconds, 1),
            "revoked": self.rounds,
            "asked": self.asked,
            "cut_off": self.asked - self.outcomes["answered"],
            "allowed_late": self.late,
            "begun_when_gone": self.gone,
            "came_back": self.entered,
            "narrowed": self.narrowed,
            "hops": self.hops,
            "flood": self.flood,
            "slowest_revoke_ms": round(self.slowest * 1000, 1),
            "outcomes": dict(sorted(self.outcomes.items())),
        }


async def _take(operator: Client, lead: str) -> None:
    await operator.call("agent:update", {"agent_id": lead, "disallowed_tools": ["drill:secret"]})


def _data_for(event: str, seconds: float = HOLD_SECONDS) -> dict[str, float] | None:
    return None if event == "drill:look" else {"seconds": seconds}


def main() -> int:
    """Run the drill in a folder of its own."""
    given = arguments("Revoke and narrow agents under load.", rounds=60, seconds=120.0)
    began = time.monotonic()
    with new_folder() as folder:
        stage = Stage(folder)
        stage.configure(handlers=["witness"], handler_paths=[str(Path(__file__).parent)])
        stage.catalogue(CATALOGUE)
        for name in ("worker", "lead"):
            stage.profile(name, WORKER)
        drill = Drill(stage)
        daemon = stage.start()
        try:
            anyio.run(drill.run, given.rounds, given.seconds)
            code, _ = daemon.terminate()
        finally:
            daemon.kill()
    if code or not drill.outcomes["answered"]:
        drill.wrong.append(f"the daemon ended with {code}, or nothing was answered at all")
    figures = drill.figures(time.monotonic() - began) | {"exit": code}
    return report(figures, drill.wrong, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
