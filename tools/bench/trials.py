"""What recording costs a call: CPU of the whole process with the observer against without it.

Counting and writing to the store are part of it. Rounds with and without it follow each other, and
the cheapest of each counts.

python tools/bench/trials.py [--json FILE]
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from report import ROOT, Report, arguments, use_checkout

# This folder holds a socket.py: what comes now must find the one of Python.
sys.path.remove(str(Path(__file__).resolve().parent))
use_checkout()
sys.path.append(str(ROOT))

import anyio  # noqa: E402 - after the path is set
from tests.fakes import built_in_handlers, starter_files  # noqa: E402

from remit.app.kernel import build_services, make_kernel  # noqa: E402
from remit.config.settings.load import load_settings  # noqa: E402
from remit.features.registry.store import MissionLabel, TrialRows  # noqa: E402
from remit.features.registry.trials import TrialObserver, Trials  # noqa: E402
from remit.kernel.authority.keyring import KeyRing  # noqa: E402
from remit.kernel.authority.revision import Authority, HandlerTable  # noqa: E402
from remit.kernel.authority.store import PrincipalRows  # noqa: E402
from remit.kernel.dispatch.dispatcher import Dispatcher  # noqa: E402
from remit.kernel.feature import Startup  # noqa: E402
from remit.kernel.store.database import Database  # noqa: E402
from remit.model.principal import OPERATOR  # noqa: E402

ROUNDS = 25
BUDGET = 1.05
CALLS: list[tuple[str, Any, int, float | None]] = [
    ("state:get", {"key": "a"}, 5_000, BUDGET),
    ("state:set", {"key": "a", "value": 1}, 500, BUDGET),
    ("math:add", {"a": 1, "b": 2}, 20_000, None),
]
"""Event, data, calls of a round, budget. The last one is decided and run inline, without a thread,
a task or the store, and is the least that a call can be; over a socket nobody sees it alone."""
LABELS = {"": None, " in a mission": MissionLabel("m", ("eu", "salary"), "small")}


async def measure(report: Report, folder: str) -> None:
    """Each event with and without the observer, in a mission and outside of one."""
    async with Database(f"{folder}/remit.db") as database:
        handlers, files = built_in_handlers(), starter_files()
        authority = Authority(HandlerTable(handlers), lambda: files)
        keyring = KeyRing("operator-key", authority.fleet, PrincipalRows(database))
        kernel = make_kernel(authority, database, keyring)
        settings = load_settings({}, {}, "/nonexistent")
        kernel = build_services(kernel, Startup(settings, database, HandlerTable()))
        kernel.observers[:] = [
            one for one in kernel.observers if not isinstance(one, TrialObserver)
        ]
        dispatcher = Dispatcher(kernel, timeout=60)
        trials = Trials(TrialRows(database))
        observer = TrialObserver(trials, authority.fleet, kernel.wall_clock)

        async def spent(event: str, data: Any, calls: int) -> float:
            begun = time.process_time()
            for _ in range(calls):
                await dispatcher.dispatch(OPERATOR, event, data)
            await trials.write()
            return (time.process_time() - begun) / calls

        await dispatcher.dispatch(OPERATOR, "state:set", {"key": "a", "value": 1})
        for event, data, calls, budget in CALLS:
            for where, label in LABELS.items():
                trials.release(OPERATOR.id)
                if label is not None:
                    trials.bind(OPERATOR.id, "", label)
                bare, watched = [], []
                for _ in range(ROUNDS):
                    bare.append(await spent(event, data, calls))
                    kernel.observers.append(observer)
                    watched.append(await spent(event, data, calls))
                    kernel.observers.remove(observer)
                least, most = min(bare), min(watched)
                note = f"{1e6 * (most - least):.1f} us on {1e6 * least:.1f} us"
                report.slower(
                    f"{event}{where}", "no observer", most / least, at_most=budget, note=note
                )


def main() -> int:
    """Measure everything."""
    options = arguments("Recording trials of calls")
    report = Report("Trials: CPU of a call in process, the cheapest of several rounds")
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(measure, report, folder)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
