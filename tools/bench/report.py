"""What every benchmark shares: timing, a table with verdicts, JSON.

A benchmark answers in ratios, taken in one run on one machine, because a ratio still means
something on another machine and a number of nanoseconds does not.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "pip install --require-hashes -r requirements-bench.lock"
"""What to do about a peer that is missing."""


class Row(msgspec.Struct, frozen=True):
    """One measured ratio and what was asked of it."""

    what: str
    against: str
    ratio: float | None
    budget: str = ""
    met: bool | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """One word for the table."""
        if self.ratio is None:
            return "skipped"
        return {True: "met", False: "MISSED", None: "-"}[self.met]


class Report:
    """Collects rows, prints them, writes them."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: list[Row] = []

    def slower(
        self, what: str, against: str, ratio: float, *, at_most: float | None = None, note: str = ""
    ) -> None:
        """Note how many times as much `what` takes as `against`."""
        budget = "" if at_most is None else f"<= {at_most:g}x"
        met = None if at_most is None else ratio <= at_most
        self.rows.append(Row(what, against, ratio, budget, met, note))

    def faster(
        self,
        what: str,
        against: str,
        ratio: float,
        *,
        at_least: float | None = None,
        note: str = "",
    ) -> None:
        """Note how many times as fast `what` is as `against`."""
        budget = "" if at_least is None else f">= {at_least:g}x faster"
        met = None if at_least is None else ratio >= at_least
        self.rows.append(Row(what, against, ratio, budget, met, note))

    def judged(
        self, what: str, against: str, ratio: float, *, budget: str, met: bool, note: str = ""
    ) -> None:
        """Note a ratio whose budget is not a ratio."""
        self.rows.append(Row(what, against, ratio, budget, met, note))

    def skip(self, what: str, against: str, reason: str) -> None:
        """Note that something could not be measured, and say so."""
        self.rows.append(Row(what, against, None, note=reason))

    def print(self) -> None:
        """Print the table."""
        head = ("measured", "against", "ratio", "budget", "verdict", "note")
        body = [
            (r.what, r.against, _shown(r.ratio), r.budget or "-", r.verdict, r.note)
            for r in self.rows
        ]
        print(table(self.title, head, body))

    def to_json(self) -> dict[str, Any]:
        """The whole report."""
        return {
            "title": self.title,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "rows": [msgspec.to_builtins(row) | {"verdict": row.verdict} for row in self.rows],
        }

    @property
    def ok(self) -> bool:
        """Tell whether no budget was missed."""
        return all(row.met is not False for row in self.rows)

    def finish(self, json_file: Path | None) -> int:
        """Print, write, and answer the exit code: 1 when a budget was missed."""
        self.print()
        if json_file is not None:
            json_file.write_text(json.dumps(self.to_json(), indent=2) + "\n")
        return 0 if self.ok else 1


def table(title: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Lines under a head, each column as wide as its widest cell."""
    widths = [max(len(line[at]) for line in [head, *body]) for at in range(len(head))]
    lines = [head, ["-" * width for width in widths], *body]
    drawn = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join(["", title, *drawn])


def _shown(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"  # noqa: PLR2004 - digits that matter


def shortest(run: Callable[[], Any], *, repeats: int = 7) -> float:
    """The seconds of the fastest of several runs: the one that was disturbed least."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def arguments(description: str) -> argparse.Namespace:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON")
    return parser.parse_args()


def use_checkout() -> None:
    """Let the packages of this checkout be imported when they are not installed."""
    for folder in ("daemon", "socket_client"):
        path = str(ROOT / folder)
        if path not in sys.path:
            sys.path.append(path)
