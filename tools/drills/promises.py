"""What a daemon was asked to keep, what it acknowledged, and whether it kept its word.

Clients write all the time until the daemon is gone. Then another daemon is started on the same home
and asked: everything that was acknowledged must be there, and what was under way must be there
wholly or not at all.
"""

import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from cast import REFUSALS
from stage import Stage

import remit_client
from remit_client.errors import ConnectionLost, RemitError, Unauthorised, Unreachable
from remit_client.keys import Key, new_key

CATALOGUE = """\
version: 1
capabilities:
  base:
    description: What the drill asks
    event_patterns: [system:health, permission:check_many]
    always_included: true
"""
PAIRS = {"A": ("state:get", "state:list"), "B": ("state:set", "state:delete")}
EVENTS = sorted([*PAIRS["A"], *PAIRS["B"]])
ASKED = ("state:set", "agent:spawn", "config:reload")
GONE = (ConnectionLost, Unreachable)
"""How a call may end when its daemon does: nobody claims that it was done."""
HANG_SECONDS = 20.0
PAGE = 500
ONE_COMMIT = 256
"""Rows of one commit at the most."""

Step = Callable[[remit_client.Client, int], Awaitable[None]]


class Promises:
    """The acknowledged and the open entries of all rounds."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.problems: list[str] = []
        self.acknowledged: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        """What was under way when a daemon ended, by kind."""
        self.begun = 0
        """What was written to the audit and never answered."""
        self.half = 0
        self.most_behind = 0
        """Rows that the head of the audit was behind after a kill."""
        self._numbers = itertools.count(1)
        self._sent: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._spawning: dict[str, Key] = {}
        self._spawned: dict[str, Key] = {}
        self._ended: set[str] = set()
        self._decisions: set[str] = set()
        self._seen = 0
        self._revision = 0
        self._kind = self._asked = "A"
        self._outsider = new_key("outsider")

    def figures(self) -> dict[str, Any]:
        """What was done, by kind."""
        return {
            "acknowledged": dict(sorted(self.acknowledged.items())),
            "under_way": dict(sorted(self.open.items())),
            "begun_without_answer": self.begun,
            "spawns_without_answer": self.half,
            "head_behind_rows": self.most_behind,
        }

    def prove_files(self) -> None:
        """Prove the audit as a dead daemon left it: its head is at the end, or a commit away."""
        done = self.stage.run("audit", "verify")
        found = json.loads(done.stdout or "{}")
        if not found.get("ok"):
            self.problems.append(f"the audit after a kill: {done.stdout}{done.stderr}")
            return
        self.most_behind = max(self.most_behind, found["signed"]["behind"])
        if self.most_behind > ONE_COMMIT:
            self.problems.append(f"the head is {found['signed']['behind']} rows behind")

    # ---- definitions ----

    def write(self, kind: str, *, broken: bool = False) -> None:
        """Put one of two definitions on disk; a mixture of both cannot go unseen."""
        for name, event in zip(("left", "right"), PAIRS[kind], strict=True):
            self.stage.profile(name, f"additional_tools: [{event}]\n")
        if broken:
            self.stage.profile("right", "additional_tolls: [state:get]\n")
        self.stage.profile("pair", "extends: [left, right]\n")
        self.stage.catalogue(CATALOGUE)

    def write_again(self, *, broken: bool) -> None:
        """Put on disk what the last edit meant, or a mistake in its place."""
        self.write(self._asked, broken=broken)

    # ---- writing until the end ----

    async def prepare(self) -> None:
        """Register the client that is refused."""
        key = self._outsider
        data = {"name": key.name, "public_key": key.public_key, "profile": "pair"}
        async with remit_client.connect(home=self.stage.home) as operator:
            await operator.call("key:add", data)

    async def load(self, workers: int, started: anyio.Event) -> None:
        """Write in every way until the daemon is gone; a call that hangs is a problem."""
        async with (
            self._connect() as operator,
            self._connect(self._outsider) as outsider,
            anyio.create_task_group() as tasks,
        ):
            started.set()
            for number in range(workers):
                tasks.start_soon(self._repeat, "set", self._set, operator, number)
                tasks.start_soon(self._repeat, "spawn", self._spawn, operator, number)
                tasks.start_soon(self._repeat, "deny", self._deny, outsider, number)
            tasks.start_soon(self._repeat, "reload", self._reload, operator, 0)

    def _connect(self, key: Key | None = None) -> Any:
        return remit_client.connect(home=self.stage.home, key=key)

    async def _repeat(
        self, kind: str, step: Step, client: remit_client.Client, number: int
    ) -> None:
        while True:
            try:
                with anyio.fail_after(HANG_SECONDS):
                    await step(client, number)
            except GONE:
                self.open[kind] += 1
                return
            except TimeoutError:
                self.problems.append(f"a client hangs in {kind}")
                return
            except RemitError as error:
                self.problems.append(f"{kind}: {error}")
                return
            self.acknowledged[kind] += 1

    async def _set(self, client: remit_client.Client, number: int) -> None:
        key = f"worker/{number}"
        value = self._sent[key] = self._sent.get(key, 0) + 1
        answer = await client.ask("state:set", {"key": key, "value": value})
        self._kept[key] = value
        self._decisions.add(answer.decision)

    async def _spawn(self, client: remit_client.Client, _number: int) -> None:
        # With keys of the drill's own: it can try them also when no answer came.
        key = new_key(f"agent-{next(self._numbers)}")
        self._spawning[key.name] = key
        data = {"agent_id": key.name, "public_key": key.public_key, "profile": "pair"}
        answer = await client.ask("agent:spawn", data)
        self._spawned[key.name] = self._spawning.pop(key.name)
        self._decisions.add(answer.decision)

    async def _deny(self, client: remit_client.Client, _number: int) -> None:
        try:
            await client.call("agent:spawn", {"profile": "pair"})
            self.problems.append("an outsider spawned an agent")
        except RemitError as error:
            if error.code not in REFUSALS:
                raise
            self._decisions.add(error.decision)

    async def _reload(self, client: remit_client.Client, _number: int) -> None:
        self._asked = "B" if self._asked == "A" else "A"
        self.write(self._asked)
        answer = await client.ask("config:reload")
        self._kind, self._revision = self._asked, int(answer.data["revision"])
        self._decisions.add(answer.decision)

    # ---- asking the next daemon ----

    async def check(self, stale: bool) -> None:  # noqa: FBT001 - anyio.run takes no keywords
        """Compare what the daemon that runs now knows with what was acknowledged."""
        with anyio.fail_after(3 * HANG_SECONDS):
            async with self._connect() as operator:
                await self._check_state(operator)
                rows = await self._new_rows(operator)
                self._check_decisions(rows)
                await self._check_agents(operator, _asked_to_spawn(rows))
                await self._check_definitions(operator, stale=stale)
                await self._new_rows(operator)  # what was written by looking counts for nothing

    async def _check_state(self, operator: remit_client.Client) -> None:
        found = await operator.call("state:list", {"limit": PAGE})
        values = {item["key"]: item["value"] for item in found["items"]}
        for key, sent in self._sent.items():
            value, kept = values.get(key, 0), self._kept.get(key, 0)
            if not kept <= value <= sent:
                self.problems.append(f"{key}: acknowledged {kept}, sent {sent}, found {value}")
            self._kept[key] = self._sent[key] = value

    async def _new_rows(self, operator: remit_client.Client) -> list[Any]:
        rows: list[Any] = []
        before: dict[str, int] = {}
        while True:
            page = await operator.call("audit:query", {"limit": PAGE, **before})
            rows += [row for row in page["items"] if row["seq"] > self._seen]
            if page["next"] is None or page["next"] <= self._seen:
                self._seen = max([self._seen, *(row["seq"] for row in rows)])
                return rows
            before = {"before": page["next"]}

    def _check_decisions(self, rows: list[Any]) -> None:
        missing = self._decisions - {row["decision"] for row in rows}
        asked = {row["decision"] for row in rows if row["event"] in ASKED}
        self.begun += len(asked - self._decisions)
        self.problems += [f"decision {decision} is not in the audit" for decision in missing]
        self._decisions.clear()

    async def _check_agents(self, operator: remit_client.Client, written: set[str]) -> None:
        listed = await _agents(operator)
        lost = self._spawned.keys() - listed
        back = self._ended & listed
        unwritten = ((self._spawned | self._spawning).keys() & listed) - written
        self.problems += [f"agent {name} was acknowledged and is gone" for name in lost]
        self.problems += [f"agent {name} was ended and is back" for name in back]
        self.problems += [f"agent {name} is not in the audit" for name in unwritten]
        for name in list(self._spawned)[-1:]:  # of the others the listing says enough
            if not await self._opens(self._spawned[name]):
                self.problems.append(f"agent {name} was acknowledged, but its key does not open")
        for name, key in self._spawning.items():
            await self._check_half(operator, name, key, is_listed=name in listed)
        await self._end_all(operator)

    async def _check_half(
        self, operator: remit_client.Client, name: str, key: Key, *, is_listed: bool
    ) -> None:
        """One whose answer was lost is there with key and grant, or its name and key are free."""
        self.half += 1
        if await self._opens(key) != is_listed:
            self.problems.append(f"agent {name} is listed: {is_listed}, but its key says otherwise")
        try:
            if is_listed:
                status = await operator.call("agent:status", {"agent_id": name})
                if "system:health" not in status["allowed_events"]:
                    self.problems.append(f"agent {name} has no grant")
            else:
                data = {"agent_id": name, "public_key": key.public_key, "profile": "pair"}
                await operator.call("agent:spawn", data)
        except RemitError as error:
            self.problems.append(f"agent {name} is there by half: {error}")
        self._spawned[name] = key

    async def _opens(self, key: Key) -> bool:
        try:
            async with self._connect(key) as agent:
                await agent.call("system:health")
        except Unauthorised:
            return False
        return True

    async def _end_all(self, operator: remit_client.Client) -> None:
        """The tree must not grow from round to round; and an acknowledged end is a write, too."""
        for name in self._spawned:
            try:
                await operator.call("agent:terminate", {"agent_id": name})
            except RemitError as error:
                self.problems.append(f"agent {name} cannot be ended: {error}")
        self._ended = set(self._spawned)
        self._spawned, self._spawning = {}, {}

    async def _check_definitions(self, operator: remit_client.Client, *, stale: bool) -> None:
        health = await operator.call("system:health")
        if health["revision"] < self._revision or health["stale"] != stale:
            self.problems.append(f"revision {self._revision} was acknowledged, found {health}")
        self._revision = health["revision"]
        async with self._connect(self._outsider) as outsider:
            answer = await outsider.call("permission:check_many", {"events": EVENTS})
        allowed = {row["event"] for row in answer["results"] if row["allowed"]}
        # With mistakes on disk, a reload whose answer was lost may have been kept or not.
        wanted = {self._kind, self._asked} if stale else {self._asked}
        found = [kind for kind in wanted if allowed == set(PAIRS[kind])]
        if not found:
            self.problems.append(f"{sorted(allowed)} is in force, wanted is one of {wanted}")
        self._kind = next(iter(found), self._kind)


def _asked_to_spawn(rows: list[Any]) -> set[str]:
    return {
        row["details"]["data"].get("agent_id", "")
        for row in rows
        if (row["event"], row["outcome"]) == ("agent:spawn", "allowed")
    }


async def _agents(operator: remit_client.Client) -> set[str]:
    names: set[str] = set()
    after = ""
    while True:
        page = await operator.call("agent:list", {"limit": PAGE, "after": after})
        names |= {item["agent_id"] for item in page["items"]}
        if page["next"] is None:
            return names
        after = page["next"]
