"""A flood of denials: `python tools/drills/denials.py [--seconds S] [--writers N] [--json]`.

Some clients write state, first alone and then beside an agent that asks for what it may not use as
fast as it can, from a process of its own: the same event again and again, then always a new name.
Each phase tells how long the writes took and how many rows a second the audit got from the agent.
The others must be written as before, the rows must stay few, and after SIGTERM the counts of the
rows must make up every denial that was answered.
"""

import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
from cast import add_client, connect
from stage import PATIENCE, Stage, arguments, new_folder, report

from remit_client import Client
from remit_client.errors import RemitError
from remit_client.keys import save_key

IN_FLIGHT = 200
BURST = 640
"""Rows that one agent may cause at once: each is the first of its kind."""
MOST_ROWS = 15.0
"""Rows a second that it may cause in the long run."""
PAGE = 500
CATALOGUE = """\
version: 1
capabilities:
  base: {description: For everybody, event_patterns: [system:health], always_included: true}
  write: {description: Write, event_patterns: [state:set]}
"""
WRITER = "capabilities: [write]\n"
FLOODER = "limits: {max_calls_per_minute: 10}\n"
FREE = "capabilities: []\n"


class Drill:
    """Who writes, who floods, and what it costs."""

    def __init__(self, stage: Stage, writers: int, seconds: float) -> None:
        self.stage = stage
        self.writers = writers
        self.seconds = seconds
        self.problems: list[str] = []
        self.figures: dict[str, Any] = {}
        self.answered: Counter[str] = Counter()
        self._waits: list[float] = []
        self._is_over = False

    async def play(self) -> None:
        """Alone, beside a flood of one event, beside a flood of names, and without a limit."""
        async with connect(self.stage) as operator, anyio.create_task_group() as tasks:
            for number in range(self.writers):
                key = await add_client(operator, f"writer{number}", "writer")
                tasks.start_soon(self._write, key)
            await self._phase(operator, "alone")
            for name, profile, way in (
                ("same", "flooder", "same"),
                ("names", "flooder", "names"),
                ("unlimited", "free", "names"),
            ):
                key = await add_client(operator, f"flood-{name}", profile)
                file = self.stage.folder / f"{name}.key"
                save_key(file, key)
                await self._phase(operator, name, file, way)
            self._is_over = True

    async def _write(self, key: Any) -> None:
        async with connect(self.stage, key) as remit:
            number = 0
            while not self._is_over:
                began = time.monotonic()
                data = {"key": f"{key.name}/{number % 50}", "value": number}
                await remit.call("state:set", data, timeout=PATIENCE)
                self._waits.append(time.monotonic() - began)
                number += 1

    async def _phase(
        self, operator: Client, name: str, file: Path | None = None, way: str = ""
    ) -> None:
        self._waits.clear()
        rows, began = await _newest(operator), time.monotonic()
        command = [sys.executable, __file__, "--flood", f"{self.stage.home},{file},{way}"]
        if file is None:
            await anyio.sleep(self.seconds)
        else:
            done = await anyio.run_process([*command, "--seconds", str(self.seconds)])
            told = dict(word.split("=") for word in done.stdout.decode().split())
            self.answered[f"flood-{name}"] = sum(map(int, told.values()))
            self.figures |= {f"{name}_{code}": int(count) for code, count in told.items()}
        seconds, waits = time.monotonic() - began, sorted(self._waits)
        caused = max(await _newest(operator) - rows - len(waits), 0)
        self.figures |= {
            f"{name}_writes_s": round(len(waits) / seconds),
            f"{name}_p50_ms": round(waits[len(waits) // 2] * 1000, 1),
            f"{name}_p99_ms": round(waits[math.ceil(len(waits) * 0.99) - 1] * 1000, 1),
        }
        if file is not None:
            self.figures[f"{name}_rows_s"] = round(caused / seconds, 1)
            if caused > BURST + MOST_ROWS * seconds:
                self.problems.append(f"{name}: {caused / seconds:.0f} rows a second")

    async def account(self) -> None:
        """Compare the counts of the audit with what was answered."""
        async with connect(self.stage) as operator:
            for name, answered in self.answered.items():
                written, before = 0, {}
                while before is not None:
                    where = {"agent": name, "outcome": "denied", "limit": PAGE}
                    page = await operator.call("audit:query", where | before)
                    written += sum(row.get("count", 1) for row in page["items"])
                    before = {"before": page["next"]} if page["next"] else None
                # What was under way when the flood ended was decided, and its answer not heard.
                if not answered <= written <= answered + IN_FLIGHT:
                    self.problems.append(f"{name}: {answered} denied, {written} in the audit")


async def _newest(operator: Client) -> int:
    page = await operator.call("audit:query", {"limit": 1})
    return int(page["items"][0]["seq"]) if page["items"] else 0


async def flood(home: str, file: str, way: str, seconds: float) -> None:
    """Ask for what is not granted, as fast as answers come."""
    import remit_client  # noqa: PLC0415 - the other process

    codes: Counter[str] = Counter()
    deadline = time.monotonic() + seconds

    async def ask(remit: Client, first: int) -> None:
        number = first
        while time.monotonic() < deadline:
            event = "agent:spawn" if way == "same" else f"secret:name_{number}"
            try:
                await remit.call(event, timeout=PATIENCE)
            except RemitError as error:
                codes[error.code] += 1
            number += IN_FLIGHT

    async with (
        remit_client.connect(home=home, key=file) as remit,
        anyio.create_task_group() as tasks,
    ):
        for first in range(IN_FLIGHT):
            tasks.start_soon(ask, remit, first)
    print(*(f"{code}={count}" for code, count in codes.items()))


def main() -> int:
    """Run the drill in a folder of its own."""
    given = arguments("Flood the daemon with denials.", seconds=5.0, writers=4, flood="")
    if given.flood:
        home, file, way = given.flood.split(",")
        anyio.run(flood, home, file, way, given.seconds)
        return 0
    with new_folder() as folder:
        stage = Stage(folder)
        stage.configure()
        stage.catalogue(CATALOGUE)
        for name, text in (("writer", WRITER), ("flooder", FLOODER), ("free", FREE)):
            stage.profile(name, text)
        drill = Drill(stage, given.writers, given.seconds)
        daemon = stage.start()
        try:
            anyio.run(drill.play)
            code, _ = daemon.terminate()
            if code:
                drill.problems.append(f"exit code {code}")
            daemon = stage.start()
            anyio.run(drill.account)
            if problem := stage.audit_problem():
                drill.problems.append(problem)
        finally:
            daemon.kill()
    return report({"drill": "denials"} | drill.figures, drill.problems, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
