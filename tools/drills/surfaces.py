"""One question, every surface: `python tools/drills/surfaces.py [--rounds N] [--json]`.

In each round a daemon runs on random definitions: capabilities that require each other, that wait
for reviews or are retired, profiles with variables and denials, agents with changes of their own
and parents, approvals, a session, an upstream server. For each holder and event the same question
is asked of every surface: permission:check_many, permission:explain, permission:matrix,
permission:who_can, agent:status, composition:resolve, HTTP, the list and the calls of MCP,
discovery, a subscription, and the commands, beside the daemon and after it has ended. Then an edit
is planned, applied and asked about again. A disagreement with the first answer is a problem.
"""

import http.client
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cast import spawned_key
from stage import PATIENCE, Stage, arguments, new_folder, report

import remit_client.sync
from remit_client.sync import Client

EVENTS = [f"drill:e{number}" for number in range(10)]
NEWS = [f"drill:news{number}" for number in range(3)]
OUTSIDE = ["mcp:port:fetch_fish", "mcp:port:drop_fish"]
ALL = [*EVENTS, *NEWS, *OUTSIDE]
PROFILES = ["p0", "p1", "p2", "p3"]
NAMES = ["c0", "c1", "c2", "c3", "c4"]
COMMANDS_A_ROUND = 12
BASE = """\
  base:
    description: What everybody has
    event_patterns: [system:health, system:discover, "permission:*", "discovery:*", "event:*"]
    always_included: true
"""
HANDLERS = '''
from remit import event_handler
from remit.kernel.dispatch.context import Context


def _make(name: str, effect: str) -> None:
    @event_handler(name, capability="drill", effect=effect)
    def handler() -> str:
        """Answer."""
        return "done"


def _push(name: str) -> None:
    @event_handler(name, capability="drill", effect="read", pushed=True)
    def handler(number: int) -> None:
        """Be told.

        Args:
            number: which.
        """


for _number in range(10):
    _make(f"drill:e{_number}", ("read", "write", "destructive")[_number % 3])
for _number in range(3):
    _push(f"drill:news{_number}")


@event_handler("drill:shout", capability="drill", effect="read")
def shout(ctx: Context) -> int:
    """Tell everybody everything."""
    return sum(ctx.emit(f"drill:news{number}", {"number": number}) for number in range(3))
'''
SERVER = """
import json, sys
tools = [{"name": n, "description": "Does " + n, "inputSchema": {"type": "object"}}
         for n in ("fetch_fish", "drop_fish")]
for line in sys.stdin:
    told = json.loads(line)
    if "id" not in told:
        continue
    method, result = told.get("method"), {}
    if method == "initialize":
        result = {"protocolVersion": told["params"]["protocolVersion"],
                  "capabilities": {"tools": {}}, "serverInfo": {"name": "port", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": told["id"], "result": result}), flush=True)
"""

Rights = dict[str, set[str]]


class World:
    """Random definitions, and an edit of them."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def some(self, names: list[str], most: int) -> list[str]:
        """A few of these."""
        return sorted(self.dice.sample(names, self.dice.randint(0, min(most, len(names)))))

    def catalogue(self) -> str:
        """Capabilities that require later ones."""
        text = f"version: 1\ncapabilities:\n{BASE}"
        for at, name in enumerate(NAMES):
            more = ""
            if self.dice.random() < 0.3:  # noqa: PLR2004 - about a third wait for a review
                more += ", security_review_required: true"
            if self.dice.random() < 0.1:  # noqa: PLR2004 - and some are gone
                more += ", status: retired"
            text += (
                f"  {name}: {{description: d, event_patterns: {_list(self.some(ALL, 8))},"
                f" requires: {_list(self.some(NAMES[at + 1 :], 2))}{more}}}\n"
            )
        return text

    def profile(self) -> str:
        """Capabilities, additions, and denials for one shift; some do no more than read."""
        limit = self.dice.choice(["", "", "read", "write"])
        shift = self.dice.choice(["", ", when: {shift: night}"])
        ceiling = f"  - {{name: max_effect, inline: {limit}{shift}}}\n" if limit else ""
        return (
            "variables: {shift: {type: string, default: day}}\n"
            "components:\n"
            f"  - {{name: capabilities, inline: {_list(self.some(NAMES, 4))}}}\n"
            "  - {name: tool_overrides, when: {shift: night},"
            f" inline: {{disallowed_tools: {_list(self.some(EVENTS, 3))}}}}}\n"
            "  - {name: tool_overrides,"
            f" inline: {{additional_tools: {_list(self.some(EVENTS, 2))}}}}}\n"
            f"{ceiling}"
        )

    def agent(self) -> dict[str, Any]:
        """A profile with a shift and changes of its own."""
        return {
            "profile": self.dice.choice(PROFILES),
            "variables": {"shift": self.dice.choice(["day", "night"])},
            "capabilities": {name: self.dice.random() < 0.7 for name in self.some(NAMES, 2)},  # noqa: PLR2004
            "additional_tools": self.some(EVENTS, 2),
            "on_excess": "narrow",
        }


def _list(names: Iterable[str]) -> str:
    return json.dumps(list(names))


class Drill:
    """What was asked where, and who disagreed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.dice = random.Random(11)  # noqa: S311 - a drill, to be repeated as it was
        self.asked: Counter[str] = Counter()
        self.wrong: list[Any] = []
        self.rounds = 0
        self.allowed = 0
        self.tokens: dict[str, str] = {}
        self.port = 0

    def run(self, rounds: int, seconds: float) -> None:
        """Each round on a home of its own."""
        deadline = time.monotonic() + seconds
        for number in range(rounds):
            if time.monotonic() > deadline:
                break
            self.stage.home = self.stage.folder / f"home{number}"
            self._round(World(self.dice))
            self.rounds += 1

    def _round(self, world: World) -> None:
        self._prepare(world)
        daemon = self.stage.start()
        try:
            self.port = int(daemon.ready["endpoints"]["http"].rpartition(":")[2].split("/")[0])
            with remit_client.sync.connect(home=self.stage.home) as operator:
                self._people(world, operator)
                before = self._ask_everything(operator)
                after = self._edit(world, operator, before)
            self._commands(after, beside=True)
        finally:
            code, _ = daemon.terminate()
            if code:
                self.wrong.append(("the daemon ended with", code, self.stage.said()))
        self._commands(after, beside=False)

    def _prepare(self, world: World) -> None:
        self.stage.home.mkdir(mode=0o700)
        self.stage.configure(http="127.0.0.1:0", handlers=["drill_events"])
        (self.stage.folder / "drill_events.py").write_text(HANDLERS, encoding="utf-8")
        server = self.stage.folder / "server.py"
        server.write_text(SERVER, encoding="utf-8")
        entry = {"command": sys.executable, "args": ["-S", str(server)]}
        entry |= {"trust": "on_first_use", "start": "eager"}
        upstreams = {"version": 1, "upstreams": {"port": entry}}
        (self.stage.home / "upstreams.yaml").write_text(json.dumps(upstreams), encoding="utf-8")
        self.stage.catalogue(world.catalogue())
        for name in PROFILES:
            self.stage.profile(name, world.profile())

    def _people(self, world: World, operator: Client) -> None:
        """Agents, some below others, some of their reviews approved, one in a session."""
        operator.call("upstream:check", {"name": "port"}, timeout=PATIENCE)
        operator.call("session:open", {"session": "calm", "disallowed_tools": ["drill:e0"]})
        self.tokens = {}
        keys = {}
        for number in range(4):
            data = world.agent() | {"agent_id": f"a{number}"}
            data |= {"session": "calm"} if number == 3 else {}  # noqa: PLR2004 - the last one
            made = operator.call("agent:spawn", data)
            self.tokens[f"a{number}"] = made["credentials"]["token"]
            keys[f"a{number}"] = spawned_key(made)
        self.keys = keys
        for item in operator.call("review:list", {"kind": "capability"})["items"]:
            if self.dice.random() < 0.5:  # noqa: PLR2004 - every other one
                operator.call("review:decide", {"id": item["id"], "decision": "approve"})

    # ---- the surfaces ----

    def _ask_everything(self, operator: Client) -> Rights:
        truth: Rights = {}
        for name in self.tokens:
            results = operator.call("permission:check_many", {"events": ALL, "agent": name})
            truth[name] = {one["event"] for one in results["results"] if one["allowed"]}
            self.asked["check_many"] += len(ALL)
        for name in PROFILES:
            found = operator.call("composition:resolve", {"profile": name})["allowed_events"]
            truth[name] = set(found) & set(ALL)
            self.asked["resolve"] += len(ALL)
        self.allowed += sum(map(len, truth.values()))
        self._ask_operator(operator, truth)
        for name in self.tokens:
            self._ask_agent(name, truth[name])
            self._ask_mcp(name, truth[name])
        return truth

    def _ask_operator(self, operator: Client, truth: Rights) -> None:
        matrix = operator.call(
            "permission:matrix", {"profiles": PROFILES, "agents": list(self.tokens)}
        )
        for row in matrix["rows"]:
            pairs = zip(matrix["columns"], row["allowed"], strict=True)
            held = {event for event, yes in pairs if yes}
            self._compare("matrix", row["subject"], truth, held)
        for event in ALL:
            found = operator.call("permission:who_can", {"event": event})
            for name, held in truth.items():
                says = name in (*found["profiles"], *found["agents"])
                self._one("who_can", name, event, says=says, held=event in held)
        for name, held in truth.items():
            kind = "agent" if name in self.tokens else "profile"
            for event in ALL:
                why = operator.call("permission:explain", {"event": event, kind: name})
                self._one("explain", name, event, says=why["allowed"], held=event in held)
                if not why["allowed"] and not _explained(why):
                    self.wrong.append(("explain gives no cause", name, event, why))
        for name in self.tokens:
            status = operator.call("agent:status", {"agent_id": name})
            self._compare("status", name, truth, set(status["allowed_events"]))

    def _ask_agent(self, name: str, held: set[str]) -> None:
        """Over the socket as itself, over HTTP, by discovery and by a subscription."""
        with remit_client.sync.connect(home=self.stage.home, key=self.keys[name]) as remit:
            for event in ALL:
                self._one("allowed", name, event, says=remit.allowed(event), held=event in held)
            found = remit.call("discovery:discover", {"query": "drill answer fish done"})
            shown = {item["id"].removeprefix("tool:") for item in found["capabilities"]}
            self._subset("discover", name, shown, held)
            with remit.subscribe("drill:*") as told:
                with remit_client.sync.connect(home=self.stage.home) as operator:
                    operator.call("drill:shout")
                heard = _heard(remit, told)
            self.asked["subscribe"] += len(NEWS)
            if heard != held & set(NEWS):
                self.wrong.append(("subscribe", name, heard, held & set(NEWS)))
        body = json.dumps({"events": ALL})
        status, answer, _ = self._http(name, "/v1/check", body)
        if status != http.client.OK:
            self.wrong.append(("http", name, status, answer))
            return
        for one in json.loads(answer)["results"]:
            event = one["event"]
            self._one("http", name, event, says=one["allowed"], held=event in held)

    def _ask_mcp(self, name: str, held: set[str]) -> None:
        """What is listed can be called, what can be called is held, and nothing else."""
        listed = {tool["name"]: tool for tool in self._mcp(name, "tools/list", {})["tools"]}
        by_event = {_event_of(tool): tool for tool in listed}
        tools = held - set(NEWS)  # what is pushed is no tool
        self._subset("mcp_list", name, set(by_event) & set(ALL), tools)
        for event in sorted(tools):
            self.asked["mcp_list"] += 1
            if event not in by_event:
                self.wrong.append(("mcp_list leaves out", name, event, sorted(listed)))
        for event in [*EVENTS, *OUTSIDE]:
            tool = by_event.get(event) or event.rpartition(":")[2]
            if event in EVENTS and event not in by_event:
                tool = event.replace(":", "_")
            answer = self._mcp(name, "tools/call", {"name": tool, "arguments": {}})
            says = not str(answer.get("message", "")).startswith("Unknown tool")
            self._one("mcp_call", name, event, says=says, held=event in held)

    def _edit(self, world: World, operator: Client, before: Rights) -> Rights:
        """A plan is what then happens."""
        self.stage.catalogue(world.catalogue())
        for name in PROFILES[:2]:
            self.stage.profile(name, world.profile())
        plan = operator.call("config:plan")
        operator.call("config:reload")
        after = self._ask_everything(operator)
        everybody = {**plan["profiles"], **plan["agents"]}
        for name, held in after.items():
            change = everybody.get(name, {"granted": [], "revoked": []})
            gained, lost = held - before[name], before[name] - held
            self.asked["plan"] += len(ALL)
            for key, found in (("granted", gained), ("revoked", lost)):
                if set(change[key]) & set(ALL) != found:
                    self.wrong.append(("plan", key, name, change[key], found))
        return after

    def _commands(self, truth: Rights, *, beside: bool) -> None:
        """A few questions by commands: each is a process of its own."""
        where = "commands" if beside else "commands_alone"
        for _ in range(COMMANDS_A_ROUND // 3):
            name, event = self.dice.choice(sorted(truth)), self.dice.choice(ALL)
            told = json.loads(self.stage.run("can", name, event).stdout)
            self._one(where, name, event, says=told["allowed"], held=event in truth[name])
            told = json.loads(self.stage.run("who-can", event).stdout)
            for one, held in truth.items():
                says = one in (*told["profiles"], *told["agents"])
                self._one(where, one, event, says=says, held=event in held)
            told = json.loads(self.stage.run("tools", name).stdout)
            shown = {tool["event"] for tool in told["tools"]} & set(ALL)
            self._subset(where, name, shown, truth[name])

    # ---- comparing ----

    def _one(self, surface: str, name: str, event: str, *, says: bool, held: bool) -> None:
        self.asked[surface] += 1
        if says != held:
            self.wrong.append((surface, name, event, "says", says, "and not", held))

    def _compare(self, surface: str, name: str, truth: Rights, held: set[str]) -> None:
        for event in ALL:
            self._one(surface, name, event, says=event in held, held=event in truth[name])

    def _subset(self, surface: str, name: str, shown: set[str], held: set[str]) -> None:
        self.asked[surface] += len(shown)
        beyond = (shown & set(ALL)) - held
        if beyond:
            self.wrong.append((surface, name, "shows", sorted(beyond)))

    # ---- over HTTP ----

    def _http(self, name: str, path: str, body: str, **headers: str) -> tuple[int, str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(
                "POST",
                path,
                body,
                {
                    "Authorization": f"Bearer {self.tokens[name]}",
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    **headers,
                },
            )
            answer = connection.getresponse()
            session = answer.headers.get("Mcp-Session-Id", "")
            return answer.status, answer.read().decode(), session
        finally:
            connection.close()

    def _mcp(self, name: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One question in a session of its own; an error is answered as it is."""
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "drill", "version": "1"},
        }
        _, _, session = self._http(name, "/mcp", _rpc("initialize", hello))
        more = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"}
        status, text, _ = self._http(name, "/mcp", _rpc(method, params), **more)
        lines = [line.removeprefix("data:") for line in text.splitlines() if "jsonrpc" in line]
        if not lines:
            return {"message": f"{status} {text}"}
        told: dict[str, Any] = json.loads(lines[-1])
        found: dict[str, Any] = told.get("result", told.get("error", {}))
        return found


def _rpc(method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def _event_of(tool: str) -> str:
    """The event behind the name of a tool."""
    if tool.startswith("drill_"):
        return tool.replace("_", ":", 1)
    return f"mcp:port:{tool}"


def _explained(why: dict[str, Any]) -> bool:
    keys = ("denied_by", "causes", "repair", "cut_by", "session", "near_misses")
    return any(why[key] for key in keys)


def _heard(remit: Client, told: Any) -> set[str]:
    """What was pushed before the answer to a question that was asked after it."""
    remit.call("system:health")  # one connection keeps its order
    found = set()
    while (push := told.take()) is not None:
        found.add(push.event)
    return found


def main() -> int:
    """Run the drill."""
    chosen = arguments("Ask every surface the same.", rounds=6, seconds=600.0)
    with new_folder() as folder:
        drill = Drill(Stage(Path(folder)))
        drill.run(chosen.rounds, chosen.seconds)
    figures = {
        "rounds": drill.rounds,
        "questions": sum(drill.asked.values()),
        "allowed": drill.allowed,
        "disagreements": len(drill.wrong),
        "surfaces": dict(sorted(drill.asked.items())),
    }
    return report(figures, drill.wrong, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
