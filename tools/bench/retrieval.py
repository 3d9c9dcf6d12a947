"""How well remit finds tools: labelled sets, ranked by the real index and by peers.

    retrieval.py DATADIR [DATADIR …] [--ranker default|bm25f|vectors|minilm] [--history K] [--json]

A DATADIR holds `tools.jsonl` ({id, name, description, params, category, server, tags}) and
`queries.jsonl` ({id, text, relevant}). Metrics run from 0 to 100; milliseconds are CPU of this
process. With `--history K` every tool gets up to K requests that are not judged by as examples, and
so do the peers: these are words that they can read as well.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from report import INSTALL, table, use_checkout

# This folder holds a socket.py: everybody else must find the one of Python.
sys.path.append(sys.path.pop(sys.path.index(str(Path(__file__).resolve().parent))))
use_checkout()

from retrieval_rankers import MODELS, PEERS, peer, remit_ranker  # noqa: E402 - after the path
from retrieval_sets import (  # noqa: E402
    METRICS,
    LabelledSet,
    Query,
    examples_of,
    judged,
    parted,
    read_set,
)

GOALS = {
    ("metatool", 0): 65.0,
    ("apibank", 0): 66.0,
    ("seal_dev", 0): 88.0,
    ("metatool", 10): 80.0,
}
"""NDCG@5 by set and examples a tool, for the default ranker, 500 queries and seed 7."""
AHEAD = 8.0
"""Points of NDCG@5 before bm25s, on the average of the sets."""
PATIENCE = 180.0
"""Seconds of CPU for all queries of one peer: one of them needs half a second for 50,000 tools."""


def measured(data: LabelledSet, options: argparse.Namespace) -> dict[str, Any]:
    """One set, ranked by remit and by every peer that is there."""
    tested, examples = _parts(data, options)
    index, rank = remit_ranker(options.ranker, data.tools, examples)
    if options.ranker == "default" and index.vectors is None:
        say(f"{data.name}: no vectors are installed, so the default ranks by words alone")
    if len(index) < len(data.tools):
        say(f"{data.name}: {len(data.tools) - len(index)} tools are beyond the limit of an index")
    rank(tested[0].text)  # what is made at the first question is not the price of each
    figures = judged(rank, tested, time.process_time)
    peers: dict[str, Any] = {}
    for name in PEERS:
        try:
            rival = peer(name, index, examples)
            peers[name] = judged(rival, tested, time.process_time, PATIENCE)
        except (ModuleNotFoundError, TimeoutError) as error:
            repair = f"; {INSTALL}" if isinstance(error, ModuleNotFoundError) else ""
            say(f"{data.name}: {name} was not measured: {error}{repair}")
            peers[name] = {"missing": str(error)}
    return {
        "set": data.name,
        "ranker": options.ranker,
        "queries": len(tested),
        **figures,
        "peers": peers,
    }


def _parts(
    data: LabelledSet, options: argparse.Namespace
) -> tuple[list[Query], dict[str, tuple[str, ...]]]:
    """The queries to judge by, and the examples, which come from none of them."""
    size = options.sample
    if options.history and len(data.queries) <= size:
        size = (len(data.queries) + 1) // 2
        say(f"{data.name}: half of the {len(data.queries)} queries give examples")
    tested, others = parted(data.queries, size, options.seed)
    if not options.history:
        return tested, {}
    examples = examples_of(others, tested, options.history)
    full = sum(len(texts) == options.history for texts in examples.values())
    say(
        f"{data.name}: {len(examples)} of {len(data.tools)} tools have examples, "
        f"{full} of them all {options.history}"
    )
    return tested, examples


def goal_of(row: dict[str, Any], options: argparse.Namespace) -> float | None:
    """What was asked of a row; only of the ranking and the sample that it was asked of."""
    if (options.ranker, options.sample, options.seed) != ("default", 500, 7):
        return None
    return GOALS.get((row["set"], options.history))


def print_table(rows: Sequence[dict[str, Any]], options: argparse.Namespace) -> bool:
    """One line a set; the answer tells whether every goal was met."""
    head = ("set", "queries", *METRICS, "ms/query", *(f"{name} ndcg@5" for name in PEERS))
    lines, met = [], True
    for row in rows:
        goal = goal_of(row, options)
        met &= goal is None or row["ndcg@5"] >= goal
        verdict = "-" if goal is None else "met" if row["ndcg@5"] >= goal else "MISSED"
        own = (row["set"], str(row["queries"]), *_figures(row))
        others = (_figure(row["peers"][name], "ndcg@5") for name in PEERS)
        lines.append((*own, *others, f">= {goal:g}" if goal else "-", verdict))
    history = f", {options.history} examples a tool" if options.history else ""
    print(table(f"remit, ranker {options.ranker}{history}", (*head, "goal", "verdict"), lines))
    if len(rows) == 1:
        _print_peers(rows[0])
    return _print_ahead(rows, options) and met


def _print_peers(row: dict[str, Any]) -> None:
    named = {f"remit {row['ranker']}": row} | row["peers"]
    lines = [(name, *_figures(figures)) for name, figures in named.items()]
    print(table(f"{row['set']}, all rankers", ("ranker", *METRICS, "ms/query"), lines))


def _print_ahead(rows: Sequence[dict[str, Any]], options: argparse.Namespace) -> bool:
    gaps = [
        row["ndcg@5"] - row["peers"]["bm25s"]["ndcg@5"]
        for row in rows
        if "missing" not in row["peers"]["bm25s"]
    ]
    if not gaps:
        print("\nahead of bm25s: not measured")
        return True
    ahead = sum(gaps) / len(gaps)
    print(
        f"\nahead of bm25s by {ahead:.1f} points of ndcg@5, on the average of {len(gaps)}: ", end=""
    )
    if len(gaps) == 1 or options.ranker != "default" or options.history:
        print("no goal, which is one for several sets, the default ranker and no examples")
        return True
    print(f"goal >= {AHEAD:g}, {'met' if ahead >= AHEAD else 'MISSED'}")
    return ahead >= AHEAD


def _figures(row: dict[str, Any]) -> list[str]:
    return [_figure(row, name) for name in METRICS] + [_figure(row, "ms_per_query", 2)]


def _figure(row: dict[str, Any], name: str, digits: int = 1) -> str:
    return f"{row[name]:.{digits}f}" if name in row else "missing"


def say(text: str) -> None:
    """A remark beside the figures."""
    print(text, file=sys.stderr)


def main() -> int:
    """Run everything; 1 says that a goal was missed, 2 that there was nothing to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DATADIR")
    parser.add_argument("--ranker", choices=tuple(MODELS), default="default")
    parser.add_argument("--history", type=_whole, default=0, metavar="K", help="examples a tool")
    parser.add_argument("--sample", type=_some, default=500, metavar="N", help="queries, at most")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print one object a set, and no table")
    options = parser.parse_args()
    rows = []
    for folder in options.folders:
        try:
            data = read_set(folder)
            for text in data.said:
                say(f"{data.name}: {text}")
            rows.append(measured(data, options))
        except (OSError, ValueError, ModuleNotFoundError) as error:
            say(f"{folder}: {error}")
            return 2
        if options.json:
            print(json.dumps(rows[-1]), flush=True)
    return 0 if options.json or print_table(rows, options) else 1


def _whole(text: str) -> int:
    if (number := int(text)) < 0:
        raise ValueError(text)
    return number


def _some(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    sys.exit(main())
