"""How fast acknowledged writes reach the disk when many wait, against aiosqlite.

python tools/bench/store.py [--json FILE]
"""

import sys

sys.path.append(sys.path.pop(0))  # socket.py beside this file must not stand for the library's

import importlib.util
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from itertools import count
from statistics import median
from time import perf_counter

import anyio
from report import INSTALL, ROOT, Report, arguments, use_checkout

use_checkout()

from remit.features.state.store import StateRows  # noqa: E402
from remit.kernel.audit.chain import AuditEntry  # noqa: E402 - after the checkout can be imported
from remit.kernel.audit.store import AuditRows  # noqa: E402
from remit.kernel.store.database import Database  # noqa: E402

WRITERS = 64
ROUNDS = 7
PER_WRITER = 200
PER_WRITER_BASELINE = 8
BUDGET = 20
BASELINE = "aiosqlite insert+commit, one connection, a lock"
SAME = "64 writers, WAL, synchronous=FULL, same table, same loop; median of rounds"
_INSERT = """
INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_decisions = count(1)  # the daemon counts them too

Write = Callable[[int, int], Awaitable[object]]
Run = Callable[[str], Awaitable[float]]


def entry(writer: int, number: int) -> AuditEntry:
    """A refusal as the daemon writes it down."""
    return AuditEntry(
        at=1_700_000_000.0 + number,
        principal=f"agent-{writer}",
        event="state:set",
        outcome="denied",
        reason="not_granted",
        decision=f"4fa1c2d3-{next(_decisions):x}",
        revision=3,
        details=b'{"key":"team/a/plan","text":"something that was refused"}',
    )


async def per_second(write: Write, per_writer: int) -> float:
    """Acknowledged writes in a second, when each writer waits for its own before the next."""

    async def write_many(writer: int) -> None:
        for number in range(per_writer):
            await write(writer, number)

    start = perf_counter()
    async with anyio.create_task_group() as group:
        for writer in range(WRITERS):
            group.start_soon(write_many, writer)
    return WRITERS * per_writer / (perf_counter() - start)


async def audit_rate(folder: str) -> float:
    """The audit log: each row is hashed together with the row before it."""
    async with Database(f"{folder}/audit.db") as database:
        rows = AuditRows(database)
        return await per_second(lambda w, n: rows.audit_append(entry(w, n)), PER_WRITER)


async def insert_rate(folder: str) -> float:
    """One INSERT through `Database.write`, without hashes: what group commit alone gives."""

    def insert(connection: sqlite3.Connection, values: tuple[object, ...]) -> None:
        connection.execute(_INSERT, values)

    seqs = count(1)
    async with Database(f"{folder}/insert.db") as database:

        async def write(writer: int, number: int) -> None:
            values = to_values(next(seqs), entry(writer, number))
            await database.write(lambda connection: insert(connection, values))

        return await per_second(write, PER_WRITER)


async def state_rate(folder: str) -> float:
    """A new key of the shared state, which reads the version before it writes."""
    async with Database(f"{folder}/state.db") as database:
        rows = StateRows(database)

        async def write(writer: int, number: int) -> None:
            await rows.state_set(f"{writer}/{number}", {"n": number, "text": "x" * 60}, "bench")

        return await per_second(write, PER_WRITER)


async def baseline_rate(folder: str) -> float:
    """The same INSERT, committed one by one, because two writers cannot share a transaction."""
    import aiosqlite  # noqa: PLC0415 - optional: only this measurement needs it

    path = f"{folder}/baseline.db"
    async with Database(path):
        pass  # makes the tables
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA synchronous = FULL")
        lock = anyio.Lock()
        seqs = count(1)

        async def write(writer: int, number: int) -> None:
            async with lock:
                values = to_values(next(seqs), entry(writer, number))
                await connection.execute(_INSERT, values)
                await connection.commit()

        return await per_second(write, PER_WRITER_BASELINE)


def to_values(seq: int, row: AuditEntry) -> tuple[object, ...]:
    """The columns; nobody computes the hashes here."""
    return (
        seq,
        row.at,
        row.principal,
        row.event,
        row.outcome,
        row.reason,
        row.decision,
        row.revision,
        row.origin,
        row.details,
        "0" * 64,
        "0" * 64,
    )


def measure(runs: dict[str, Run]) -> dict[str, float]:
    """Run everything in turns, so that a disturbed minute disturbs all of them."""
    options = {"use_uvloop": importlib.util.find_spec("uvloop") is not None}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    disk = ROOT / "build"  # a temporary folder may be in memory, where nothing is durable
    disk.mkdir(exist_ok=True)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            with tempfile.TemporaryDirectory(dir=disk) as folder:
                rates[name].append(anyio.run(run, folder, backend_options=options))
    return {name: median(found) for name, found in rates.items()}


def main() -> int:
    """Measure everything."""
    options = arguments("Durable writes")
    report = Report("Store: acknowledged writes per second, ratios in one run")
    runs: dict[str, Run] = {
        "audit_append": audit_rate,
        "one INSERT by Database.write": insert_rate,
        "state_set": state_rate,
    }
    if importlib.util.find_spec("aiosqlite") is None:
        for name in runs:
            report.skip(name, BASELINE, f"aiosqlite is not installed: {INSTALL}")
        return report.finish(options.json)
    rates = measure({"baseline": baseline_rate} | runs)
    for name in runs:
        asked = BUDGET if name == "audit_append" else None
        note = f"{rates[name]:,.0f}/s to {rates['baseline']:,.0f}/s; {SAME}"
        report.faster(name, BASELINE, rates[name] / rates["baseline"], at_least=asked, note=note)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
