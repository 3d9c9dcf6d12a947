"""The wall clock jumps: `python tools/drills/clock.py [--rounds N] [--seconds S]`.

A daemon runs on a clock that the drill sets a day forward, or an hour back; in every second round
the daemon is also started anew after the jump. No limit may forget what was used, no request may be
approved and no approval used after its time as a stopwatch measures it, mail must not be lost when
the clock goes back, the audit must stay in order, and every call must end. Prints one line of
figures; exit code 1 when something was wrong.

The jump is made in the process of the daemon (`skewed.py`): the machine's clock is not touched.
Keys do not expire, so there is nothing to try about them.
"""

import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from stage import Daemon, Stage, arguments, new_folder, report

import remit_client
from remit_client.errors import RemitError
from remit_client.keys import Key, new_key

JUMPS = (86_400 + 60, -3600)
APPROVAL_SECONDS = 3.0
WAIT_SECONDS = 0.2
CALLS = 5
MINUTE = 60
END_SECONDS = 10.0
"""A call that takes longer hangs."""
CATALOGUE = """\
version: 1
capabilities:
  base:
    description: What the drill asks
    event_patterns: [system:health, event:subscribe, event:unsubscribe]
    always_included: true
"""
PROFILES = {
    "gated": "additional_tools: [state:set]\napproval_required: [state:set]\n",
    "limited": f"limits: {{max_calls_per_minute: {CALLS}}}\n",
    "reader": "additional_tools: [message:direct]\n",
}


class Drill:
    """One home, one daemon after the other, and a clock."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.slowest = 0.0
        self._ahead = 0.0
        self._file = stage.folder / "ahead"
        self._keys: dict[str, Key] = {}
        self._program = (str(Path(__file__).with_name("skewed.py")), str(self._file))

    # ---- the clock, the daemon and its clients ----

    def jump(self, seconds: float) -> None:
        """Set the clock of the daemon, at once and whole."""
        self._ahead += seconds
        draft = self._file.with_suffix(".new")
        draft.write_text(str(self._ahead), encoding="ascii")
        draft.replace(self._file)

    def start(self) -> Daemon:
        """Start a daemon by this clock."""
        return self.stage.start(self._program)

    async def add_clients(self, number: int) -> None:
        """New clients for each round, so that no count of the round before is left."""
        async with self._connected() as operator:
            for profile in PROFILES:
                key = self._keys[profile] = new_key(f"{profile}-{number}")
                data = {"name": key.name, "public_key": key.public_key, "profile": profile}
                await operator.call("key:add", data)

    @asynccontextmanager
    async def _connected(self, profile: str | None = None) -> AsyncGenerator[remit_client.Client]:
        key = self._keys[profile] if profile else None
        async with remit_client.connect(home=self.stage.home, key=key) as client:
            yield client

    async def _code(self, client: remit_client.Client, event: str, data: Any = None) -> str:
        """How a call ends: ok, or a code; it must end."""
        began = time.monotonic()
        try:
            await client.call(event, data, timeout=END_SECONDS)
            code = "ok"
        except RemitError as error:
            code = error.code
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.counts[code] += 1
        if code in ("timeout", "internal"):
            self.problems.append(f"{event} ended with {code}")
        return code

    def _expect(self, what: str, found: object, *wanted: object) -> None:
        if found not in wanted:
            self.problems.append(f"clock {self._ahead:+.0f} s: {what}: {found}, wanted {wanted}")

    # ---- what is tried ----

    async def play(self, jump: float) -> None:
        """Everything that has to do with time, around one jump while the daemon runs."""
        async with (
            self._connected() as operator,
            self._connected("gated") as gated,
            self._connected("limited") as limited,
        ):
            began = time.monotonic()
            await self._use_up(limited)
            await self._ask(gated, "pending")
            review = await self._approve(operator, gated, "approved")
            self._expect("an approval", await self._set(gated, review), "ok")
            await self._approve(operator, gated, "late")
            await operator.call(
                "agent:send_message", {"agent_id": self._keys["reader"].name, "message": jump}
            )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._ask, gated, "during")
                await anyio.sleep(WAIT_SECONDS / 2)
                self.jump(jump)
            await self._stay_limited(limited)
            await self._mail(jump)
            await anyio.sleep(APPROVAL_SECONDS)
            await self._lapse(operator, gated)
            await self._uptime(operator, time.monotonic() - began)

    async def _use_up(self, limited: remit_client.Client) -> None:
        codes = [await self._code(limited, "system:health") for _ in range(CALLS + 1)]
        self._expect("calls a minute", codes, ["ok"] * CALLS + ["limit_exceeded"])

    async def _stay_limited(self, limited: remit_client.Client) -> None:
        try:
            await limited.call("system:health")
            self.problems.append(f"a jump to {self._ahead:+.0f} s lifted a limit")
        except RemitError as error:
            wait = error.details.get("retry_after", 0)
            if not 0 < wait <= MINUTE:
                self.problems.append(f"a jump to {self._ahead:+.0f} s: retry_after is {wait}")

    async def _set(self, gated: remit_client.Client, key: str) -> str:
        return await self._code(gated, "state:set", {"key": key, "value": 1})

    async def _ask(self, gated: remit_client.Client, key: str) -> None:
        self._expect(f"asking for {key}", await self._set(gated, key), "approval_pending")

    async def _approve(
        self, operator: remit_client.Client, gated: remit_client.Client, key: str
    ) -> str:
        """Ask for a call and approve it; answers the key of the state that it may write."""
        await self._ask(gated, key)
        self._expect(f"approving {key}", await self._decide(operator, key), "ok")
        return key

    async def _decide(self, operator: remit_client.Client, key: str) -> str:
        found = await operator.call("review:list", {"status": "pending"})
        name = self._keys["gated"].name
        for item in found["items"]:
            if item["requested_by"] == name and item["data"]["key"] == key:
                return await self._code(
                    operator, "review:decide", {"id": item["id"], "decision": "approve"}
                )
        return "not_listed"

    async def _lapse(self, operator: remit_client.Client, gated: remit_client.Client) -> None:
        """Whatever the clock says, the time of a request and of an approval has passed."""
        late = await self._decide(operator, "pending")
        self._expect("approving a request after its time", late, "not_listed", "conflict")
        for key in ("pending", "late"):
            used = await self._set(gated, key)
            self._expect(f"using {key} after its time", used, "approval_pending", "denied")

    async def _mail(self, jump: float) -> None:
        """A day forward it has expired; an hour back it comes, and once."""
        wanted = 0 if jump > 0 else 1
        got = 0
        async with (
            self._connected("reader") as reader,
            reader.subscribe("message:direct") as events,
        ):
            with anyio.move_on_after(END_SECONDS if wanted else WAIT_SECONDS) as scope:
                async for _ in events:
                    got += 1
                    scope.deadline = anyio.current_time() + WAIT_SECONDS
        self._expect("mail", got, wanted)

    async def _uptime(self, operator: remit_client.Client, seconds: float) -> None:
        uptime = (await operator.call("system:health"))["uptime"]
        if not seconds <= uptime < seconds + END_SECONDS:
            self.problems.append(f"{seconds:.1f} s have passed, and the uptime is {uptime}")

    async def before_restart(self) -> None:
        """Approve a call that the next daemon must not take for newer than it is."""
        async with self._connected() as operator, self._connected("gated") as gated:
            await self._approve(operator, gated, "restart")

    async def after_restart(self, jump: float) -> None:
        """The approval is older than the new clock knows; it must not count for longer."""
        async with self._connected() as operator, self._connected("gated") as gated:
            used = await self._set(gated, "restart")
            self._expect(f"an approval after {jump:+.0f} s", used, "approval_pending", "denied")
            await self._order(operator)

    async def _order(self, operator: remit_client.Client) -> None:
        """Numbers without a gap, whatever the times say; newest first."""
        page = await operator.call("audit:query", {"limit": 200})
        numbers = [row["seq"] for row in page["items"]]
        wanted = list(range(numbers[0], numbers[0] - len(numbers), -1))
        self._expect("the order of the audit", numbers, wanted)
        self.counts["audit_rows"] += len(numbers)


def play(drill: Drill, rounds: int, deadline: float) -> int:
    """A jump in each round, once in the run and once between two; answers how many rounds."""
    drill.jump(0)
    daemon = drill.start()
    try:
        for number in range(rounds):
            if time.monotonic() > deadline:
                return number
            jump = JUMPS[number % len(JUMPS)]
            anyio.run(drill.add_clients, number)
            anyio.run(drill.play, jump)
            anyio.run(drill.before_restart)
            code, _ = daemon.terminate()
            if code:
                drill.problems.append(f"exit code {code}")
            drill.jump(jump)
            daemon = drill.start()
            anyio.run(drill.after_restart, jump)
            if problem := drill.stage.audit_problem():
                drill.problems.append(problem)
        return rounds
    finally:
        daemon.kill()


def main() -> int:
    """Run the drill in a folder of its own."""
    given = arguments("Let the wall clock jump.", rounds=10, seconds=300.0)
    began = time.monotonic()
    with new_folder() as folder:
        stage = Stage(folder)
        stage.configure(approval_timeout=APPROVAL_SECONDS, approval_wait=WAIT_SECONDS)
        stage.catalogue(CATALOGUE)
        for name, text in PROFILES.items():
            stage.profile(name, text)
        drill = Drill(stage)
        rounds = play(drill, given.rounds, began + given.seconds)
    seconds = round(time.monotonic() - began, 1)
    figures = {"drill": "clock", "rounds": rounds, "jumps": 2 * rounds, "seconds": seconds}
    figures |= dict(sorted(drill.counts.items()))
    figures["slowest_call_ms"] = round(drill.slowest * 1000, 1)
    return report(figures, drill.problems, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
