"""How well the scanner tells injected text from ordinary text, in two halves.

    scan.py FILE.jsonl [FILE.jsonl …] [--show] [--json]

Each line is {text, label} with label 1 for an injection and 0 for ordinary text; `source` is
optional, and so is `group`, by which variants of one text stay together. A hash of the group puts
each line into one of two halves, always the same. Rules are written from the half `written` alone;
`--show` prints its misses and false alarms. Nobody looks into the half `unseen`: its figures are
the ones that count.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from report import table, use_checkout

# This folder holds a socket.py: everybody else must find the one of Python.
sys.path.append(sys.path.pop(sys.path.index(str(Path(__file__).resolve().parent))))
use_checkout()

from remit.features.scan.scanner import ScanReport, scan  # noqa: E402 - after the path

FOUND, FALSE_ALARMS = 60.0, 2.5
"""What is asked of the unseen half, in percent."""
_SHOWN = 160
Half = Literal["written", "unseen"]
HALVES: tuple[Half, ...] = get_args(Half)


class LabelledText(msgspec.Struct, frozen=True):
    """A line of a set."""

    text: str
    label: Literal[0, 1]
    source: str = ""
    group: str = ""

    @property
    def half(self) -> Half:
        """Which half it belongs to, by a hash that nobody can choose."""
        digest = hashlib.sha256((self.group or self.text).encode()).digest()
        return HALVES[digest[0] & 1]


class HeldTexts:
    """How many texts of one source were held, by half."""

    def __init__(self) -> None:
        self.texts: dict[Half, int] = dict.fromkeys(HALVES, 0)
        self.held: dict[Half, int] = dict.fromkeys(HALVES, 0)

    def add(self, half: Half, *, held: bool) -> None:
        """Count one text."""
        self.texts[half] += 1
        self.held[half] += held

    def percent(self, half: Half) -> float | None:
        """The share that was held, where there is something to take it of."""
        texts = self.texts[half]
        return round(100 * self.held[half] / texts, 2) if texts else None

    def to_json(self) -> dict[str, Any]:
        """Counts and shares by half."""
        return {
            half: {"texts": self.texts[half], "held": self.held[half], "%": self.percent(half)}
            for half in HALVES
        }


def texts_of(path: Path) -> Iterator[LabelledText]:
    """The lines of a set.

    Raises:
        SystemExit: a line is not of that form.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                one = msgspec.json.decode(line, type=LabelledText)
            except msgspec.MsgspecError as error:
                raise SystemExit(
                    f"{path}:{number}: not a line of {{text, label}}: {error}"
                ) from error
            yield one if one.source else msgspec.structs.replace(one, source=path.stem)


Tallies = dict[Literal[0, 1], dict[str, HeldTexts]]


def judged(texts: Iterable[LabelledText], *, show: bool) -> Tallies:
    """What was held of each source, and of all of them together, by label."""
    tallies: Tallies = {1: {"overall": HeldTexts()}, 0: {"overall": HeldTexts()}}
    for one in texts:
        report = scan(one.text)
        for name in ("overall", one.source):
            tally = tallies[one.label].setdefault(name, HeldTexts())
            tally.add(one.half, held=report.suspicious)
        if show and one.half == "written" and report.suspicious != bool(one.label):
            print(shown(one, report))
    return tallies


def shown(one: LabelledText, report: ScanReport) -> str:
    """A miss or a false alarm on one line."""
    found = " ".join(f"{hit.rule}={hit.weight}" for hit in report.findings)
    text = " ".join(one.text.split())[:_SHOWN]
    return f"{'miss' if one.label else 'FALSE'} {one.source} {report.score} [{found}] {text}"


def mean(tallies: dict[str, HeldTexts], half: Half) -> float | None:
    """The mean of the sources, each counted once: a large one does not hide the small."""
    shares = [
        share
        for name, tally in tallies.items()
        if name != "overall" and (share := tally.percent(half)) is not None
    ]
    return round(sum(shares) / len(shares), 2) if shares else None


def is_met(tallies: Tallies) -> bool:
    """Tell whether the unseen half is what is asked; a side without texts asks nothing."""
    found, alarms = (tallies[label]["overall"].percent("unseen") for label in (1, 0))
    return (found is None or found >= FOUND) and (alarms is None or alarms <= FALSE_ALARMS)


def print_side(title: str, tallies: dict[str, HeldTexts]) -> None:
    """One table: how much of each source is held, in both halves."""
    rows = [
        [name, *(_cell(tally, half) for half in HALVES)] for name, tally in sorted(tallies.items())
    ]
    rows.append(["mean of sources", *(f"{mean(tallies, half)} %" for half in HALVES)])
    print(table(title, ["source", *HALVES], rows))


def _cell(tally: HeldTexts, half: Half) -> str:
    share = tally.percent(half)
    return "-" if share is None else f"{share:g} % of {tally.texts[half]}"


def main() -> int:
    """Print both halves; 1 if the unseen one is not what is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--show", action="store_true", help="what the half `written` got wrong")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    texts = (one for path in options.files for one in texts_of(path))
    tallies = judged(texts, show=options.show)
    met = is_met(tallies)
    if options.json:
        sides = {"found": tallies[1], "false_alarms": tallies[0]}
        told = {side: {k: v.to_json() for k, v in of.items()} for side, of in sides.items()}
        print(json.dumps({**told, "met": met}, indent=2))
        return 0 if met else 1
    print_side("Injections found", tallies[1])
    print_side("False alarms", tallies[0])
    asked = f"at least {FOUND:g} % found and at most {FALSE_ALARMS:g} % false alarms, unseen"
    print(f"asked: {asked}: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
