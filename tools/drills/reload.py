"""Reload under load: `python tools/drills/reload.py [--reloads N] [--seconds S]`.

Two definitions, A and B, differ in two files each, so that an answer from a mixture of both cannot
go unseen. While they take turns, and three edits of ten are broken, several connections ask all the
time. Nothing may be dropped, and every answer must belong to the revision that it names. Prints one
line of figures as JSON; exit code 1 when something was wrong.
"""

import argparse
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

import remit_client
from remit_client.errors import RemitError
from remit_client.keys import new_key

EVENTS = ["state:get", "state:list", "state:set", "state:delete"]
PAIRS = {"A": ("state:get", "state:list"), "B": ("state:set", "state:delete")}
CONNECTIONS = 4
IN_FLIGHT = 8
INVALID_SHARE = 0.3
START_SECONDS = 20
CATALOGUE = """\
version: 1
capabilities:
  base:
    description: What the drill asks
    event_patterns: [system:health, permission:check_many]
    always_included: true
"""


class Drill:
    """What was asked, what came back, and what each revision is known to be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.kinds = {1: "A"}
        self.answered = self.changed = self.rejected = 0
        self.mixed: list[Any] = []
        self.dropped: list[str] = []
        self.slowest = 0.0
        self.is_over = False

    def write(self, kind: str, *, broken: bool = False) -> None:
        """Put the files of one definition on disk."""
        folder = self.folder / "compositions"
        folder.mkdir(exist_ok=True)
        for name, event in zip(("left", "right"), PAIRS[kind], strict=True):
            (folder / f"{name}.yaml").write_text(f"name: {name}\nadditional_tools: [{event}]\n")
        if broken:
            (folder / "right.yaml").write_text("name: right\nadditional_tolls: [state:get]\n")
        (folder / "pair.yaml").write_text("name: pair\nextends: [left, right]\n")
        (self.folder / "capabilities.yaml").write_text(CATALOGUE)

    async def ask(self, remit: remit_client.Client) -> None:
        """Ask until it is over; keep every answer that does not fit its revision for the end."""
        seen: list[tuple[int, tuple[str, ...]]] = []
        while not self.is_over:
            began = time.perf_counter()
            try:
                answer = await remit.ask("permission:check_many", {"events": EVENTS})
            except RemitError as error:
                self.dropped.append(str(error))
                continue
            self.slowest = max(self.slowest, time.perf_counter() - began)
            self.answered += 1
            allowed = tuple(r["event"] for r in answer.data["results"] if r["allowed"])
            if answer.data["revision"] != answer.revision:
                self.mixed.append((answer.revision, answer.data))
            if not seen or seen[-1] != (answer.revision, allowed):
                seen.append((answer.revision, allowed))
        # Only now is every revision known: an answer may overtake the answer of its reload.
        self.mixed += [(n, got) for n, got in seen if set(got) != set(PAIRS[self.kinds[n]])]

    async def edit(self, remit: remit_client.Client, reloads: int, seconds: float) -> None:
        """Edit and reload, in turns, some of the edits broken."""
        dice = random.Random(7)  # noqa: S311 - a drill, to be repeated as it was
        kinds = itertools.cycle("BA")
        deadline = time.monotonic() + seconds
        for _ in range(reloads):
            if time.monotonic() > deadline:
                break
            if dice.random() < INVALID_SHARE:
                await self._edit_badly(remit)
                continue
            kind = next(kinds)
            self.write(kind)
            done = await remit.call("config:reload")
            if done["revision"] in self.kinds or not done["changed"]:
                self.mixed.append(("number given twice", done["revision"]))
            self.kinds[done["revision"]] = kind
            self.changed += 1
        self.is_over = True

    async def _edit_badly(self, remit: remit_client.Client) -> None:
        self.write("A", broken=True)
        try:
            await remit.call("config:reload")
            self.mixed.append("a broken edit came in force")
        except RemitError as error:
            if error.code != "invalid_definition":
                self.dropped.append(str(error))
            self.rejected += 1

    async def run(self, reloads: int, seconds: float) -> None:
        """Connect everybody and let them loose."""
        async with remit_client.connect(home=self.home) as operator:
            keys = [new_key(f"client{number}") for number in range(CONNECTIONS)]
            for key in keys:
                data = {"name": key.name, "public_key": key.public_key, "profile": "pair"}
                await operator.call("key:add", data)
            await self._load(operator, keys, reloads, seconds)

    async def _load(
        self, operator: remit_client.Client, keys: list[Any], reloads: int, seconds: float
    ) -> None:
        async def connection(key: Any) -> None:
            async with (
                remit_client.connect(home=self.home, key=key) as remit,
                anyio.create_task_group() as asking,
            ):
                for _ in range(IN_FLIGHT):
                    asking.start_soon(self.ask, remit)

        async with anyio.create_task_group() as tasks:
            for key in keys:
                tasks.start_soon(connection, key)
            await self.edit(operator, reloads, seconds)

    def figures(self, seconds: float) -> dict[str, Any]:
        """The one line."""
        return {
            "drill": "reload",
            "seconds": round(seconds, 1),
            "reloads": self.changed + self.rejected,
            "rejected": self.rejected,
            "answered": self.answered,
            "dropped": len(self.dropped),
            "mixed": len(self.mixed),
            "slowest_ms": round(self.slowest * 1000, 1),
        }


def serve(drill: Drill) -> "subprocess.Popen[bytes]":
    """Start the daemon on the drill's own files and wait for its ready line."""
    settings = 'catalogue = "capabilities.yaml"\ncompositions = "compositions"\nwatch = false\n'
    (drill.folder / "remit.toml").write_text(settings + 'log_level = "error"\n')
    command = [sys.executable, "-m", "remit", "serve", "--json", "--home", str(drill.home)]
    process = subprocess.Popen(command, cwd=drill.folder, stdout=subprocess.PIPE)  # noqa: S603
    if process.stdout is None or not process.stdout.readline():
        raise SystemExit("the daemon did not start")
    return process


def main() -> int:
    """Run the drill in a folder of its own."""
    parser = argparse.ArgumentParser(description="Reload under load.")
    parser.add_argument("--reloads", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="remit-") as folder:
        drill = Drill(Path(folder))
        drill.write("A")
        process = serve(drill)
        began = time.monotonic()
        try:
            anyio.run(drill.run, given.reloads, given.seconds)
            process.send_signal(signal.SIGTERM)
            ended = process.wait(START_SECONDS)
        finally:
            process.kill()
            process.wait()
    print(json.dumps(drill.figures(time.monotonic() - began) | {"exit": ended}))
    for wrong in [*drill.mixed, *drill.dropped][:5]:
        print(wrong, file=sys.stderr)
    return 1 if drill.mixed or drill.dropped or ended or not drill.answered else 0


if __name__ == "__main__":
    sys.exit(main())
