"""Ten thousand agents: spawned, checked, recomputed after a reload, terminated.

Everything goes through the dispatcher, over the store and on the event loop that the daemon has: a
store in memory would keep every row of the audit, and look like agents that never go. Keys are made
before the clock starts: they cost the same in any daemon.
"""

import gc
import importlib.util
import os
import sys
import tempfile
import time
import tracemalloc
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
from tests.fakes import built_in_handlers, starter_files  # noqa: E402

from remit.app.kernel import build_services, make_kernel  # noqa: E402
from remit.config.settings.load import load_settings  # noqa: E402
from remit.kernel.authority.keyring import KeyRing  # noqa: E402
from remit.kernel.authority.revision import Authority, HandlerTable  # noqa: E402
from remit.kernel.authority.store import PrincipalRows  # noqa: E402
from remit.kernel.dispatch.dispatcher import Dispatcher  # noqa: E402
from remit.kernel.feature import Startup  # noqa: E402
from remit.kernel.store.database import Database  # noqa: E402
from remit.model.principal import OPERATOR, Principal  # noqa: E402

AGENTS = 10_000
LEADS = 100
AT_ONCE = 50
ROUNDS = 3
MEMORY_BUDGET = 1.05
RELOAD_BUDGET_MS = 200.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file to keep
        return int(file.read().split()[1]) * _PAGE


class Fleet:
    """A daemon without a socket, and agents that hold one of a few profiles under some leads."""

    def __init__(self, database: Database) -> None:
        handlers, found = built_in_handlers(), files()
        self.authority = Authority(HandlerTable(handlers), lambda: found)
        self.keyring = KeyRing("operator-key", self.authority.fleet, PrincipalRows(database))
        settings = load_settings({}, {}, "/nonexistent")
        kernel = make_kernel(self.authority, database, self.keyring)
        kernel = build_services(kernel, Startup(settings, database, HandlerTable()))
        self.dispatcher = Dispatcher(kernel, timeout=60)

    async def ask(self, who: Principal, event: str, data: Any) -> Any:
        """The answer's data; anything else ends the benchmark."""
        answer = await self.dispatcher.dispatch(who, event, data)
        if answer.error is not None:
            raise RuntimeError(answer.error.message)
        return answer.data

    async def spawn_all(self, keys: list[str]) -> None:
        """Leads under the operator, all others under a lead; some at once, as clients would."""
        numbered = list(enumerate(keys))
        for at, key in numbered[:LEADS]:
            await self.spawn(OPERATOR, at, key, "boss")
        leads = [self.keyring.principal(f"agent-{at}") or OPERATOR for at in range(LEADS)]
        profiles = ("executor", "communicator", "observer", "minimal")
        others = iter(numbered[LEADS:])

        async def work() -> None:
            for at, key in others:
                await self.spawn(leads[at % LEADS], at, key, profiles[at % 4])

        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(work)

    async def spawn(self, parent: Principal, at: int, key: str, profile: str) -> None:
        """One agent."""
        data = {"agent_id": f"agent-{at}", "public_key": key, "profile": profile}
        await self.ask(parent, "agent:spawn", data)

    async def check_all(self) -> None:
        """One call of every agent."""
        for name in self.authority.fleet.names():
            principal = self.keyring.principal(name)
            if principal is not None:
                await self.ask(principal, "permission:check", {"event": "state:set"})

    def recompute(self) -> None:
        """The rights of everybody, in a revision that nobody has asked about yet."""
        for name in self.authority.fleet.names():
            self.authority.fleet.grant(name, self.authority.catalogue)

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
    """The seconds of CPU that something takes, in all threads."""
    start = time.process_time()
    await run()
    return time.process_time() - start


async def measure(report: Report, folder: str) -> None:
    """Fill and empty the fleet some times: only the first one pays for what is kept for good."""
    keys = [zmq.curve_keypair()[0].decode() for _ in range(ROUNDS * AGENTS)]
    async with Database(f"{folder}/agents.db") as database:
        fleet = Fleet(database)
        memory = [resident()]
        for at in range(ROUNDS):
            batch = keys[at * AGENTS : (at + 1) * AGENTS]
            spawning = await timed(lambda batch=batch: fleet.spawn_all(batch))
            checking = await timed(fleet.check_all)
            full = resident()
            reloading = reload_ms(fleet)
            ending = await timed(fleet.end_all)
            memory.append(resident())
            note_costs(report, spawning, checking, ending, at=at)
            note_reload(report, reloading, at=at)
            note_memory(report, memory[-2], full, memory[-1], at=at)
        await note_objects(report, fleet)


async def note_objects(report: Report, fleet: Fleet) -> None:
    """What stays alive, apart from memory that Python has free and keeps for later."""
    keys = [zmq.curve_keypair()[0].decode() for _ in range(AGENTS)]
    tracemalloc.start()
    await fleet.spawn_all(keys)
    gc.collect()
    full, _ = tracemalloc.get_traced_memory()
    await fleet.end_all()
    gc.collect()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    note = f"{left / 1e6:.2f} MB of {full / 1e6:.1f} MB still alive, tables of empty dicts among it"
    what = "objects made for agents that have ended"
    report.slower(what, "while they lived", left / full, note=note)


def note_costs(report: Report, spawning: float, checking: float, ending: float, *, at: int) -> None:
    """What an agent costs in the last round."""
    if at < ROUNDS - 1:
        return
    micro = 1e6 / AGENTS
    note = f"{spawning * micro:.0f} us of CPU an agent, kept on disk and let in"
    report.slower("spawn an agent", "check one permission", spawning / checking, note=note)
    note = f"{checking * micro:.0f} us of CPU a call"
    report.slower("check one permission", "itself", 1.0, note=note)
    note = f"{ending * micro:.1f} us of CPU an agent"
    report.slower("terminate an agent", "check one permission", ending / checking, note=note)


def reload_ms(fleet: Fleet) -> float:
    """The milliseconds of CPU for every grant in a new revision."""
    # The same files again, as a new revision: an approval counts as one.
    fleet.authority.approve(frozenset())
    start = time.process_time()
    fleet.recompute()
    return (time.process_time() - start) * 1000


def note_reload(report: Report, spent: float, *, at: int) -> None:
    """Hold it against the budget, each time."""
    report.judged(
        f"recompute all grants after a reload, round {at + 1}",
        f"{RELOAD_BUDGET_MS:g} ms of CPU",
        spent / RELOAD_BUDGET_MS,
        budget="<= 1x",
        met=spent <= RELOAD_BUDGET_MS,
        note=f"{spent:.0f} ms for {AGENTS:,} agents",
    )


def note_memory(report: Report, before: int, full: int, after: int, *, at: int) -> None:
    """What stays when all have ended; the first round also fills what a daemon keeps for good."""
    what = f"memory after all have ended, round {at + 1}"
    note = (
        f"{before / 1e6:.1f} MB before, {full / 1e6:.1f} MB with {AGENTS:,} agents, "
        f"{after / 1e6:.1f} MB after"
    )
    at_most = MEMORY_BUDGET if at else None
    report.slower(what, "before they came", after / before, at_most=at_most, note=note)


def main() -> int:
    """Run everything."""
    options = arguments(__doc__ or "")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    report = Report(f"{AGENTS:,} agents through the dispatcher")
    disk = ROOT / "build"  # a temporary folder may be in memory, where nothing is durable
    disk.mkdir(exist_ok=True)
    loop = {"use_uvloop": importlib.util.find_spec("uvloop") is not None}
    with tempfile.TemporaryDirectory(dir=disk) as folder:
        anyio.run(measure, report, folder, backend_options=loop)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
