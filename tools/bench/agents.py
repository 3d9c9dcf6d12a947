"""Ten thousand agents: spawned, checked, recomputed after a reload, terminated.

Everything goes through the dispatcher, over a store in memory, so that what is measured is the
daemon and not the disk. Keys are made before the clock starts: they cost the same in any daemon.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from report import ROOT, Report, arguments, use_checkout

# This folder holds a socket.py: what comes now must find the one of Python.
sys.path.remove(str(Path(__file__).resolve().parent))
use_checkout()
sys.path.append(str(ROOT))

import anyio  # noqa: E402 - after the path is set
import structlog  # noqa: E402
import zmq  # noqa: E402
from tests.fakes import Desk, built_in_handlers, starter_files  # noqa: E402

from remit.model.principal import OPERATOR, Principal  # noqa: E402

AGENTS = 10_000
LEADS = 100
RELOAD_BUDGET_MS = 200.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file to keep
        return int(file.read().split()[1]) * _PAGE


class Fleet:
    """A desk, and agents that hold one of a few profiles under a hundred leads."""

    def __init__(self) -> None:
        self.desk = Desk(built_in_handlers(), starter_files())

    async def ask(self, who: Principal, event: str, data: Any) -> Any:
        """The answer's data; anything else ends the benchmark."""
        answer = await self.desk.dispatcher.dispatch(who, event, data)
        if answer.error is not None:
            raise RuntimeError(answer.error.message)
        return answer.data

    async def spawn_all(self, keys: list[str]) -> None:
        """Leads under the operator, all others under a lead."""
        profiles = ("executor", "communicator", "observer", "minimal")
        leads = []
        for at, key in enumerate(keys):
            data: dict[str, Any] = {"agent_id": f"agent-{at}", "public_key": key}
            if at < LEADS:
                limits = {"profile": "boss"}
                await self.ask(OPERATOR, "agent:spawn", data | limits)
                leads.append(self.desk.keyring.principal(f"agent-{at}"))
                continue
            parent = leads[at % LEADS]
            if parent is None:
                raise RuntimeError("a lead is gone")
            await self.ask(parent, "agent:spawn", data | {"profile": profiles[at % 4]})

    async def check_all(self) -> None:
        """One call of every agent."""
        for name in self.desk.authority.fleet.names():
            principal = self.desk.keyring.principal(name)
            if principal is not None:
                await self.ask(principal, "permission:check", {"event": "state:set"})

    def recompute(self) -> None:
        """The rights of everybody, in a revision that nobody has asked about yet."""
        authority = self.desk.authority
        for name in authority.fleet.names():
            authority.fleet.grant(name, authority.catalogue)

    async def end_all(self) -> None:
        """End the leads, and with them everybody."""
        for at in range(LEADS):
            await self.ask(OPERATOR, "agent:terminate", {"agent_id": f"agent-{at}"})


def files() -> Any:
    """The starter, and a lead without a limit of children."""
    found = starter_files()
    tools = "['*', TodoRead, TodoWrite]"
    text = f"name: boss\ndescription: a lead\noperator: true\nadditional_tools: {tools}\n"
    name = "compositions/boss.yaml"
    contents = dict(found.contents) | {name: text.encode()}
    return type(found)(found.catalogue, [*found.compositions, name], contents)


async def timed(run: Callable[[], Any]) -> float:
    """The seconds of CPU that something takes."""
    start = time.process_time()
    await run()
    return time.process_time() - start


def measure_inserts(keys: list[str]) -> float:
    """The seconds of CPU for putting as many entries into a dict."""
    start = time.process_time()
    table = {key: (at, key) for at, key in enumerate(keys)}
    return max(time.process_time() - start, 1e-6) * (len(table) / len(keys))


async def measure(report: Report, fleet: Fleet, keys: list[str], rounds: int = 2) -> None:
    """Fill and empty the fleet twice: the first time also pays for what is kept for good."""
    start = resident()
    empty = full = start
    spawning = checking = ending = 0.0
    for _ in range(rounds):
        batch = [keys.pop() for _ in range(AGENTS)]
        empty = resident()
        spawning = await timed(lambda batch=batch: fleet.spawn_all(batch))
        checking = await timed(fleet.check_all)
        full = resident()
        note_reload(report, fleet)
        ending = await timed(fleet.end_all)
    left = resident() - empty
    per_agent = (full - empty) / AGENTS
    micro = 1e6 / AGENTS
    note = f"{spawning * micro:.0f} us of CPU an agent, kept and let in"
    report.slower("spawn an agent", "check one permission", spawning / checking, note=note)
    note = f"{checking * micro:.0f} us of CPU a call, {per_agent / 1024:.1f} KiB an agent"
    report.slower("check one permission", "itself", 1.0, note=note)
    note = f"{ending * micro:.1f} us of CPU an agent"
    report.slower("terminate an agent", "check one permission", ending / checking, note=note)
    report.judged(
        "memory after all have ended",
        "before they came",
        resident() / empty,
        budget="<= 1.05x",
        met=left <= 0.05 * empty,
        note=f"{empty / 1e6:.0f} MB before, {full / 1e6:.0f} MB with {AGENTS:,} agents",
    )


def note_reload(report: Report, fleet: Fleet) -> None:
    """Recompute every grant in a new revision."""
    authority = fleet.desk.authority
    # The same files again, as a new revision: an approval counts as one.
    authority.approve(frozenset())
    start = time.process_time()
    fleet.recompute()
    spent = (time.process_time() - start) * 1000
    report.judged(
        "recompute all grants after a reload",
        f"{RELOAD_BUDGET_MS:g} ms of CPU",
        spent / RELOAD_BUDGET_MS,
        budget="<= 1x",
        met=spent <= RELOAD_BUDGET_MS,
        note=f"{spent:.0f} ms for {AGENTS:,} agents",
    )


def main() -> int:
    """Run everything."""
    options = arguments(__doc__ or "")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    report = Report(f"{AGENTS:,} agents through the dispatcher")
    fleet = Fleet()
    fleet.desk.files = files()
    fleet.desk.authority.reload()
    keys = [zmq.curve_keypair()[0].decode() for _ in range(2 * AGENTS)]
    anyio.run(measure, report, fleet, keys)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
