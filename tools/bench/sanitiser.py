"""How well injected text is told from ordinary text, and how fast.

    sanitiser.py FILE.jsonl [FILE.jsonl …] [--json]

Each line is {text, label} with label 1 for an injection and 0 for ordinary text; `source` is
optional. The threshold is that of the product; nothing is tuned here.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from report import table, use_checkout

# This folder holds a socket.py: everybody else must find the one of Python.
sys.path.append(sys.path.pop(sys.path.index(str(Path(__file__).resolve().parent))))
use_checkout()

from remit.features.scan.scanner import scan  # noqa: E402
from remit.text.sanitise import sanitise  # noqa: E402 - after the path

DETECTED, FALSE_ALARMS = 60.0, 2.0
"""What is asked, in percent."""
SIZES = (10_000, 100_000, 1_000_000)
HOSTILE = "send the all your ignore previous read and then please do not tell my email password to "
"""Beginnings of many rules, and the end of none."""


class Tally:
    """What was found in the texts of one source."""

    def __init__(self) -> None:
        self.texts = [0, 0]
        self.flagged = [0, 0]
        self.seconds = 0.0

    def add(self, label: int, *, flagged: bool, seconds: float) -> None:
        """Count one text."""
        self.texts[label] += 1
        self.flagged[label] += flagged
        self.seconds += seconds

    def figures(self) -> dict[str, Any]:
        """Percentages, where there is something to take them of."""
        return {
            "texts": sum(self.texts),
            "detected": self._percent(1),
            "false_alarms": self._percent(0),
            "ms": round(1000 * self.seconds / max(1, sum(self.texts)), 3),
        }

    def _percent(self, label: int) -> float | None:
        return (
            round(100 * self.flagged[label] / self.texts[label], 2) if self.texts[label] else None
        )


def rows_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Text, label and source of each line.

    Raises:
        SystemExit: a line is not of that form.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                text, label = row["text"], int(row["label"])
                if not isinstance(text, str) or label not in (0, 1):
                    raise ValueError("text is a string, label is 0 or 1")  # noqa: TRY301
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(
                    f"{path}:{number}: not a line of {{text, label}}: {error}"
                ) from error
            yield text, label, str(row.get("source", path.stem))


def judged(paths: Sequence[Path]) -> dict[str, Tally]:
    """Every source, and all of them together under `overall`."""
    scan("ignore all previous instructions")  # the rules are compiled once, not for each text
    tallies: dict[str, Tally] = {"overall": Tally()}
    for path in paths:
        for text, label, source in rows_of(path):
            began = time.process_time()
            flagged = scan(text).suspicious
            taken = time.process_time() - began
            for name in ("overall", source):
                tallies.setdefault(name, Tally()).add(label, flagged=flagged, seconds=taken)
    return tallies


def timed() -> list[dict[str, Any]]:
    """Milliseconds of CPU by size, for ordinary and hostile text."""
    ordinary = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted(Path().glob("docs/**/*.md"))
    )
    ordinary = ordinary or Path(__file__).read_text(encoding="utf-8")
    rows = []
    for name, base in (("ordinary", ordinary), ("hostile", HOSTILE), ("one letter", "a")):
        for size in SIZES:
            text = (base * (size // len(base) + 1))[:size]
            rows.append(
                {
                    "text": name,
                    "characters": size,
                    "scan_ms": _cpu_ms(scan, text),
                    "sanitise_ms": _cpu_ms(sanitise, text),
                }
            )
    return rows


def _cpu_ms(work: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    work(text)
    return round(1000 * (time.process_time() - began), 1)


def is_met(overall: dict[str, Any]) -> bool:
    """Tell whether the figures are what is asked; a side without texts asks nothing."""
    detected, alarms = overall["detected"], overall["false_alarms"]
    return (detected is None or detected >= DETECTED) and (alarms is None or alarms <= FALSE_ALARMS)


def main() -> int:
    """Print the tables; 1 if what is asked is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    tallies = {name: tally.figures() for name, tally in judged(options.files).items()}
    overall = tallies["overall"]
    met = is_met(overall)
    speed = timed()
    if options.json:
        print(json.dumps({"sources": tallies, "speed": speed, "met": met}, indent=2))
        return 0 if met else 1
    print(
        table(
            "What was told apart",
            ["source", "texts", "detected %", "false alarms %", "ms/text"],
            [
                [name, *("-" if value is None else str(value) for value in figures.values())]
                for name, figures in tallies.items()
            ],
        )
    )
    print(
        table(
            "CPU by size",
            ["text", "characters", "scan ms", "sanitise ms"],
            [[str(value) for value in row.values()] for row in speed],
        )
    )
    asked = f"at least {DETECTED:g} % detected, at most {FALSE_ALARMS:g} % false alarms"
    print(f"asked: {asked}: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
