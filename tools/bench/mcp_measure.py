"""How `mcp.py` measures: everybody in turns, and the round that was disturbed least counts."""

import importlib.util
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp_hosts import MODERN, Host, HttpHost, Json, ask, cpu_of, result_of
from mcp_site import Daemon, daemon
from mcp_tools import ANSWER, OWN, call_of, chosen, made_tools, module, real_tools
from report import INSTALL, ROOT, Report

DUMPS = ROOT.parent / "shared" / "data" / "mcp_tools"
ROUNDS = 12
REQUESTS = 40
WARM = 10
SHOWN = {"bare": "bare mcp", "fastmcp": "fastmcp"}
BUDGET = {"bare": 1.3, "fastmcp": 1.0}


class Subject:
    """Somebody who answers, and the processes that do it."""

    def __init__(self, host: Host, *pids: int) -> None:
        self.host = host
        self.pids = list(pids)
        self.cpu: list[float] = []
        self.seconds: list[float] = []

    def measure(self, method: str, params: Json, count: int) -> None:
        """Ask so often, one after the other."""
        self.host.wake()
        request = self.host.prepared(method, params)
        for _ in range(WARM):
            result_of(self.host.exchange(request))
        before, waits = cpu_of(self.pids), []
        for _ in range(count):
            began = time.perf_counter()
            self.host.exchange(request)
            waits.append(time.perf_counter() - began)
        self.cpu.append((cpu_of(self.pids) - before) / count)
        self.seconds.append(statistics.median(waits))
        result_of(self.host.exchange(request))

    def best(self) -> tuple[float, float]:
        """The CPU of a request, and how long it took, in the rounds that were disturbed least."""
        found = min(self.cpu), min(self.seconds)
        self.cpu, self.seconds = [], []
        return found


def in_turns(subjects: dict[str, Subject], asked: dict[str, tuple[str, Json]]) -> None:
    """Measure everybody, round by round."""
    for _ in range(ROUNDS):
        for name, subject in subjects.items():
            subject.measure(*asked[name], REQUESTS)


def compare(
    report: Report,
    what: str,
    subjects: dict[str, Subject],
    asked: tuple[str, Json],
    *,
    judged: bool,
) -> None:
    """Note what remit takes against each of the others."""
    in_turns(subjects, dict.fromkeys(subjects, asked))
    cost, wait = subjects["remit"].best()
    for name, shown in SHOWN.items():
        if name not in subjects:
            report.skip(what, shown, f"not installed: {INSTALL}")
            continue
        theirs, their_wait = subjects[name].best()
        note = (
            f"{cost * 1e3:.2f} ms of CPU against {theirs * 1e3:.2f};"
            f" took {wait * 1e3:.2f} ms against {their_wait * 1e3:.2f}"
        )
        limit = BUDGET[name] if judged else None
        report.slower(f"CPU, {what}", shown, cost / theirs, at_most=limit, note=note)


def write_tools(folder: Path) -> str:
    """Write down what the peers serve besides the list; answers the module for remit."""
    tools = real_tools(DUMPS, OWN) or made_tools(OWN)
    (folder / "peer_tools.py").write_text(module(tools, "fastmcp"), encoding="utf-8")
    (folder / "answer.json").write_text(json.dumps(ANSWER), encoding="utf-8")
    return module(tools, "remit")


@contextmanager
def ours(folder: Path) -> Iterator[tuple[Daemon, list[Json]]]:
    """A daemon with the tools; what it lists is what the peers list from then on."""
    with daemon(folder / "ours", tools=write_tools(folder)) as one:
        listed = ask(HttpHost(one.port, MODERN, one.token), "tools/list", {})["tools"]
        (folder / "tools.json").write_text(json.dumps(listed), encoding="utf-8")
        yield one, listed


def peers() -> list[str]:
    """Those that are installed."""
    return [name for name in SHOWN if name == "bare" or importlib.util.find_spec(name)]


def questions(listed: list[Json]) -> dict[str, tuple[tuple[str, Json], bool]]:
    """What is asked: the method and its parameters, and whether there is a budget."""
    reads, changes = chosen(listed, changes=False), chosen(listed, changes=True)
    return {
        "tools/list": (("tools/list", {}), True),
        "tools/call": (("tools/call", call_for(reads)), True),
        "tools/call of a change, audited on disk": (("tools/call", call_for(changes)), False),
    }


def call_for(tool: Json) -> Json:
    """The parameters of a call."""
    return {"name": tool["name"], "arguments": call_of(tool)}
