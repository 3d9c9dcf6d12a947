"""The disk fills up: `python tools/drills/disk.py [--rounds N] [--seconds S] [--way tmpfs|limit]`.

The home, and the daemon's log with it, lie on a small file system that is filled to the last byte
while clients write and ask. Writes must be refused as `store_unavailable`, and nothing of them be
kept; reads, checks and refusals must go on; a narrowing edit must come in force on SIGHUP. A client
is refused and its key revoked meanwhile: both must be written, from the reserve, and stay. When
there is room again, writes must work by themselves. Every second round also ends the daemon, by
SIGTERM and by SIGKILL in turns, and starts another on the full disk. At the end the audit is proved
and every acknowledged value looked up. Prints one line of figures; exit code 1 when something was
wrong.

To mount a file system takes root. Without, the size of the daemon's files is limited from outside,
which its store feels as an error of the disk; then nobody starts on a full disk.
"""

import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import anyio
from cast import REFUSALS, add_client, connect, refusal_of
from small_disk import Disk, small_disk
from stage import PATIENCE, Daemon, NotReadyError, Stage, arguments, new_folder, report

import remit_client
from remit_client.errors import RemitError, Unauthorised
from remit_client.keys import Key, new_key

LOW = 2.0
"""Seconds of a full disk in each round."""
VALUE = "x" * 20_000
KEYS = 20
CATALOGUE = """\
version: 1
capabilities:
  base:
    description: What the drill asks
    event_patterns: [permission:check, permission:check_many]
    always_included: true
"""
WIDE, NARROW = "additional_tools: [state:get, state:list]\n", "additional_tools: [state:get]\n"
ASKED = ["state:get", "state:list"]


class Drill:
    """What was asked, how it ended, and what must be there."""

    def __init__(self, stage: Stage, disk: Disk) -> None:
        self.stage = stage
        self.disk = disk
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.slowest_recovery = 0.0
        self.started_full = self.refused_start = 0
        self._kept: dict[str, int] = {}
        self._names = {"reader"}
        self._number = 0
        self._is_full = self._is_over = False
        self._reader = new_key("reader")
        self._revoked: list[Key] = []

    async def prepare(self) -> None:
        """Register the client that reads and is refused."""
        key = self._reader
        data = {"name": key.name, "public_key": key.public_key, "profile": "reader"}
        async with remit_client.connect(home=self.stage.home) as operator:
            await operator.call("key:add", data)

    async def play(self, daemon: Daemon) -> None:
        """Fill the disk under load, and make room again."""
        self._is_over = False
        victim = await self.add_victim()
        async with (
            remit_client.connect(home=self.stage.home) as operator,
            remit_client.connect(home=self.stage.home, key=self._reader) as reader,
            anyio.create_task_group() as tasks,
        ):
            await self._set(operator)
            tasks.start_soon(self._read, reader)
            tasks.start_soon(self._be_refused, reader)
            self.disk.fill(daemon)
            self._is_full = True
            await self._write_in_vain(operator)
            await self._revoke(operator, victim)
            health = await operator.call("system:health")
            if health["status"] != ("disk_full" if self.disk.way == "tmpfs" else "ok"):
                self.problems.append(f"the health of a full disk: {health}")
            await self._narrow(daemon, reader)
            self._is_full = False
            self.disk.free(daemon)
            await self._recover(operator)
            self.stage.profile("reader", WIDE)
            await operator.call("config:reload")
            self._is_over = True

    # ---- while the disk is full ----

    async def _write_in_vain(self, operator: remit_client.Client) -> None:
        """Write until it is refused, and go on writing: it stays refused, in every way."""
        deadline = time.monotonic() + LOW
        refused = self.counts["refused"]
        while time.monotonic() < deadline:
            await self._set(operator)
            await self._add(operator, "agent:spawn", "agent_id", f"agent-{self._number}")
            await self._add(operator, "key:add", "name", f"key-{self._number}")
        if self.counts["refused"] == refused:
            self.problems.append("nothing was refused although the disk was full")

    async def _set(self, operator: remit_client.Client) -> bool:
        self._number += 1
        number, key = self._number, f"key/{self._number % KEYS}"
        data = {"key": key, "value": {"number": number, "ballast": VALUE}}
        if await self._try(operator, "state:set", data):
            self._kept[key] = number
            return True
        return False

    async def _add(self, operator: remit_client.Client, event: str, field: str, name: str) -> None:
        data = {field: name, "public_key": new_key(name).public_key, "profile": "reader"}
        if await self._try(operator, event, data):
            self._names.add(name)

    async def _try(self, operator: remit_client.Client, event: str, data: dict[str, Any]) -> bool:
        try:
            await operator.call(event, data, timeout=PATIENCE)
        except RemitError as error:
            self.counts["refused"] += 1
            if error.code != "store_unavailable" or not error.hint:
                self.problems.append(f"{event} on a full disk: {error}")
            return False
        self.counts["written"] += 1
        return True

    async def _read(self, reader: remit_client.Client) -> None:
        """Ask as if nothing was; a value that was acknowledged before is always there."""
        while not self._is_over:
            try:
                await reader.call("permission:check_many", {"events": ASKED})
                await reader.call("state:get", {"key": "key/1"})
            except RemitError as error:
                self.problems.append(f"a read while the disk was full: {error}")
                return
            self.counts["read_full" if self._is_full else "read"] += 1

    async def _be_refused(self, reader: remit_client.Client) -> None:
        while not self._is_over:
            code = "ok"
            try:
                await reader.call("state:set", {"key": "theirs", "value": 1})
            except RemitError as error:
                code = error.code
            if code not in REFUSALS:
                self.problems.append(f"a reader that writes while the disk is full hears {code}")
                return
            self.counts["denied"] += 1

    async def add_victim(self) -> Key:
        """A client that is going to be refused and revoked."""
        async with connect(self.stage) as operator:
            key = await add_client(operator, f"victim-{len(self._revoked)}", "reader")
        self._names.add(key.name)
        return key

    async def revoke(self, victim: Key) -> None:
        """The same for a daemon that is about to end."""
        async with connect(self.stage) as operator:
            await self._revoke(operator, victim)

    async def _revoke(self, operator: remit_client.Client, victim: Key) -> None:
        """A denial and a revocation, of which nothing may be lost."""
        async with connect(self.stage, victim) as remit:
            if await refusal_of(remit, "state:set", {"key": "theirs", "value": 1}) != "denied":
                self.problems.append(f"{victim.name} was not refused on a full disk")
        # Without a reserve it is in force, and answered as the failure that it is.
        wanted = "" if self.disk.way == "tmpfs" else "store_unavailable"
        code = await refusal_of(operator, "key:revoke", {"name": victim.name})
        if code != wanted:
            self.problems.append(f"key:revoke on a full disk: {code or 'was answered'}")
        self._names.discard(victim.name)
        if self.disk.way == "tmpfs":
            self._revoked.append(victim)

    async def _narrow(self, daemon: Daemon, reader: remit_client.Client) -> None:
        """An edit that takes away comes in force though nothing can be written."""
        self.stage.profile("reader", NARROW)
        daemon.process.send_signal(signal.SIGHUP)
        with anyio.move_on_after(PATIENCE) as scope:
            while await reader.allowed("state:list"):
                self.counts["polls"] += 1
        if scope.cancelled_caught:
            self.problems.append("an edit did not come in force while the disk was full")

    # ---- when there is room again ----

    async def _recover(self, operator: remit_client.Client) -> None:
        began = time.monotonic()
        with anyio.move_on_after(PATIENCE) as scope:
            while not await self._set(operator):
                self.counts["tried_again"] += 1
        if scope.cancelled_caught:
            self.problems.append("writes are refused although there is room again")
        self.slowest_recovery = max(self.slowest_recovery, time.monotonic() - began)

    async def check(self) -> None:
        """Look up every acknowledged value; what was refused must not be there."""
        async with remit_client.connect(home=self.stage.home) as operator:
            for key, number in self._kept.items():
                found = await operator.call("state:get", {"key": key})
                if found["value"]["number"] != number:
                    at = found["value"]["number"]
                    self.problems.append(f"{key}: {number} was acknowledged, {at} found")
            page = await operator.call("agent:list", {"limit": 500})
            listed = {one["agent_id"] for one in page["items"]}
            for name in listed ^ self._names:
                was = "acknowledged" if name in self._names else "refused"
                self.problems.append(f"{name} was {was}, and listed is the opposite")

    async def check_revoked(self) -> None:
        """Look for what was revoked on a full disk: each was refused once, and none comes in."""
        async with connect(self.stage) as operator:
            for key in self._revoked:
                where = {"agent": key.name, "outcome": "denied"}
                page = await operator.call("audit:query", where)
                if [row["event"] for row in page["items"]] != ["state:set"]:
                    self.problems.append(f"{key.name} was refused on a full disk: not in the audit")
                with suppress(Unauthorised):
                    async with connect(self.stage, key) as remit:
                        await remit.call("system:health")
                        self.problems.append(f"{key.name} was revoked on a full disk and is back")
                self.counts["stayed_revoked"] += 1

    def restart_full(self, daemon: Daemon, *, by_kill: bool) -> Daemon:
        """End the daemon on a full disk, start there, and start again when there is room."""
        victim = anyio.run(self.add_victim)
        self.disk.fill(daemon)
        anyio.run(self.revoke, victim)
        if by_kill:
            daemon.kill()
        elif (code := daemon.terminate()[0]) != 0:
            self.problems.append(f"exit code {code} on a full disk")
        self.disk.fill(daemon)  # what its end has freed
        try:
            daemon = self.stage.start()
            self.started_full += 1
            code, _ = daemon.terminate()
            if code:
                self.problems.append(f"exit code {code} after a start on a full disk")
        except NotReadyError as error:
            self.refused_start += 1
            if '"hint"' not in error.printed:
                self.problems.append(f"a start on a full disk: {error}")
        self.disk.free(daemon)
        return self.stage.start()


def play(drill: Drill, rounds: int, deadline: float) -> int:
    """Fill and free, round after round; answers how many."""
    daemon = drill.stage.start()
    try:
        anyio.run(drill.prepare)
        for number in range(rounds):
            if time.monotonic() > deadline:
                return number
            anyio.run(drill.play, daemon)
            if number % 2 and drill.disk.way == "tmpfs":
                daemon = drill.restart_full(daemon, by_kill=number % 4 == 1)
            anyio.run(drill.check)
            anyio.run(drill.check_revoked)
            if problem := drill.stage.audit_problem():
                drill.problems.append(problem)
        return rounds
    finally:
        daemon.kill()


def main() -> int:
    """Run the drill in a folder of its own."""
    given = arguments("Fill the disk.", rounds=10, seconds=300.0, way="auto")
    began = time.monotonic()
    with new_folder() as folder, small_disk(given.way, folder / "home") as disk:
        stage = Stage(folder, log=folder / "home" / "log")
        stage.configure()
        stage.catalogue(CATALOGUE)
        stage.profile("reader", WIDE)
        drill = Drill(stage, disk)
        rounds = play(drill, given.rounds, began + given.seconds)
    seconds = round(time.monotonic() - began, 1)
    figures = {"drill": "disk", "way": disk.way, "rounds": rounds, "seconds": seconds}
    figures |= dict(sorted(drill.counts.items()))
    figures |= {"started_full": drill.started_full, "start_refused": drill.refused_start}
    figures["slowest_recovery_ms"] = round(drill.slowest_recovery * 1000, 1)
    return report(figures, drill.problems, as_json=given.json)


if __name__ == "__main__":
    sys.exit(main())
