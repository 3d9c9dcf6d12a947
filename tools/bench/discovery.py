"""What one question to discovery costs, and how much of a full list of tools it saves.

Every size is measured in processes of its own: the first one embeds everything, the second one
finds its vectors on disk, as a daemon does after a restart. Milliseconds are CPU of that process
with one thread for linear algebra. Token savings are those of 50 requests to 356 real tools.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from report import Report, use_checkout

# This folder holds a socket.py: everybody else must find the one of Python.
HERE = Path(__file__).resolve().parent
sys.path.append(sys.path.pop(sys.path.index(str(HERE))))
use_checkout()

import msgspec  # noqa: E402 - after the path
from discovery_catalogue import (  # noqa: E402
    DATA,
    catalogue,
    grant_for,
    mcp_tools,
    requests,
)

from remit.config.settings.load import load_settings  # noqa: E402
from remit.features.discovery.engine import Engine, make_engine  # noqa: E402
from remit.features.discovery.learning.lessons import NO_LESSONS  # noqa: E402
from remit.features.discovery.questions import Options  # noqa: E402
from remit.features.discovery.tiers import render  # noqa: E402
from remit.model.descriptor import (  # noqa: E402
    Descriptor,
    meta_tool,
)

SIZES = (100, 1_000, 10_000, 50_000)
BUDGET_MS = {100: 1.0, 10_000: 10.0}
SAVED = 0.9
WARMING, MEASURED = 200, 400
"""Questions before the clock starts, and while it runs; no two are the same."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PATIENCE = 900.0


def resident_mb() -> float:
    """Memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE / 1e6


def ms(run: Callable[[], Any]) -> float:
    """The milliseconds of CPU that something takes, in all threads."""
    start = time.process_time_ns()
    run()
    return (time.process_time_ns() - start) / 1e6


def make(home: Path) -> Engine:
    """The engine of a daemon whose home this is."""
    return make_engine(load_settings({"home": str(home)}, {}, "/"))


def measure(size: int, home: Path) -> dict[str, float]:
    """One size, in this process."""
    descriptors, asked = catalogue(size), requests()
    first, warming = asked[0], asked[1 : WARMING + 1]
    fresh = asked[WARMING + 1 : WARMING + MEASURED + 1]
    engine, grant, options = make(home), grant_for(descriptors), Options()
    before = resident_mb()
    build = ms(lambda: engine.put_in_force(engine.prepare(descriptors, NO_LESSONS)))
    cold = ms(lambda: engine.discover(engine.view(grant), first, options))
    for request in warming:
        engine.discover(engine.view(grant), request, options)
    warm = sorted(ms(lambda r=r: engine.discover(engine.view(grant), r, options)) for r in fresh)
    again = [ms(lambda r=r: engine.discover(engine.view(grant), r, options)) for r in fresh[-32:]]
    memory = resident_mb()
    edited = [*descriptors[1:], _edited(descriptors[0])]
    refresh = ms(lambda: engine.put_in_force(engine.prepare(edited, NO_LESSONS)))
    return {
        "build_ms": build,
        "cold_ms": cold,
        "warm_ms": median(warm),
        "warm_mean_ms": sum(warm) / len(warm),
        "warm_p95_ms": warm[int(0.95 * len(warm))],
        "again_ms": median(again),
        "refresh_ms": refresh,
        "memory_mb": memory,
        "index_mb": memory - before,
    }


def _edited(descriptor: Descriptor) -> Descriptor:
    text = f"{descriptor.description} It was edited."
    return msgspec.structs.replace(descriptor, description=text)


def in_a_process(size: int, home: Path) -> dict[str, float]:
    """One size, in a process that has done nothing before."""
    done = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, str(HERE / "discovery.py"), "--measure", str(size), "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def note_size(report: Report, size: int) -> dict[str, Any]:
    """One size, before and after a restart."""
    with tempfile.TemporaryDirectory() as folder:
        new, restarted = (in_a_process(size, Path(folder)) for _ in range(2))
    spent = min(new["warm_ms"], restarted["warm_ms"])
    budget = BUDGET_MS.get(size)
    shown = f"{size:,} descriptors"
    note = (
        f"median {spent:.2f} ms, mean {restarted['warm_mean_ms']:.2f}, 95th percentile "
        f"{restarted['warm_p95_ms']:.2f}; the same question again {restarted['again_ms']:.3f}; "
        f"the first one after a start {new['cold_ms']:.0f}"
    )
    report.judged(
        f"a new question among {shown}",
        f"{budget:g} ms of CPU" if budget else "1 ms of CPU",
        spent / (budget or 1.0),
        budget="<= 1x" if budget else "",
        met=spent <= budget if budget else None,
        note=note,
    )
    note = (
        f"{new['build_ms'] / 1000:.2f} s; with vectors kept {restarted['build_ms'] / 1000:.2f} s; "
        f"after one edit {new['refresh_ms'] / 1000:.2f} s; process {restarted['memory_mb']:.0f} MB,"
        f" {restarted['index_mb']:.0f} of them for index and questions"
    )
    ratio = new["refresh_ms"] / new["build_ms"]
    report.slower(f"index {shown} after one edit", "from nothing", ratio, note=note)
    return {"descriptors": size, "new": new, "restarted": restarted}


def note_savings(report: Report) -> list[dict[str, Any]]:
    """What a turn sends of 356 real tools, against all of them."""
    tools = mcp_tools()
    with tempfile.TemporaryDirectory() as folder:
        engine = make(Path(folder))
        engine.put_in_force(engine.prepare(tools, NO_LESSONS))
    view = engine.view(grant_for(tools))
    queries = (HERE / "discovery_queries.txt").read_text(encoding="utf-8").splitlines()
    rows = [_turn(engine, view, query) for query in queries]
    for what, key in (("the rendered answer", "prompt"), ("a list of tools", "listed")):
        worst = max(rows, key=lambda row, key=key: row[key])
        saved = [1 - row[key] / row["full_dump"] for row in rows]
        report.judged(
            f"sent in a turn, {what} and the meta-tool",
            f"all {len(tools)} tools, {rows[0]['full_dump']:,} tokens",
            worst[key] / worst["full_dump"],
            budget=f"<= {1 - SAVED:.2g}x",
            met=min(saved) >= SAVED,
            note=f"at least {min(saved):.1%} saved on {len(rows)} requests, median "
            f"{median(saved):.1%}; at most {worst[key]:,} tokens, for {worst['query'][:30]!r}",
        )
    return rows


def _turn(engine: Engine, view: Any, query: str) -> dict[str, Any]:
    found = engine.discover(view, query, Options())
    offered = engine.counter.count(msgspec.json.encode(meta_tool()).decode())
    listed = [
        {"name": one.name, "description": one.description, "input_schema": one.full_schema}
        for one in found.descriptors
    ]
    return {
        "query": query,
        "hits": [one.id for one in found.descriptors],
        "prompt": render(found.tiers, engine.counter).tokens + offered,
        "listed": engine.counter.count(msgspec.json.encode([*listed, meta_tool()]).decode()),
        "full_dump": found.full_dump,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; 1 says that a budget was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not DATA.is_dir():
        print(f"{DATA} is not there: there are no texts to search in", file=sys.stderr)
        return 2
    if options.measure:
        print(json.dumps(measure(options.measure, options.home)))
        return 0
    report = Report("One question to discovery")
    sizes = [note_size(report, size) for size in options.sizes]
    turns = note_savings(report)
    report.print()
    if options.json:
        whole = report.to_json() | {"sizes": sizes, "turns": turns}
        options.json.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
