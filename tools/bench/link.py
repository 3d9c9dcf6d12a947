"""What a link costs: 1,000 tools and 500 skills, with chains of depth 8, and ten times as much.

Milliseconds are CPU of this process. Every tool has a chain of eight dependencies, which it shares
with others, as base tools are shared; every fourth skill applies to a tool, the others have tags.
"""

import gc
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from report import Report, arguments, use_checkout

use_checkout()

from remit.features.registry.entry import Entry  # noqa: E402 - after the path
from remit.features.registry.link import Linked, link  # noqa: E402

SIZES = (100, 1_000, 10_000)
MOST_MS = 5.0
DEPTH = 8
NEEDS = 10
"""Tools that a mission asks for; `all` asks for every one that nothing else needs."""
NEAR_LINEAR = 1.5
"""How many times as much an entry may cost in a ten times larger registry."""
TAGS = [f"tag{at}" for at in range(40)]


def registry(tools: int) -> tuple[dict[str, Entry], list[Entry]]:
    """Tools in layers of one eighth each: all but the lowest need two of the layer below."""
    chance = random.Random(7)  # noqa: S311 - the same registry each time
    layer = max(1, tools // (DEPTH + 1))
    entries = {}
    for at in range(tools):
        level = at // layer
        below = [(level - 1) * layer + chance.randrange(layer) for _ in range(2)] if level else []
        entries[f"tool:{at:05}"] = Entry(
            id=f"tool:{at:05}",
            capability=f"capability {at % (tools // 2)}",
            layer="composed" if level else "base",
            dependencies=tuple(f"tool:{one:05}" for one in below),
        )
    skills = [
        Entry(
            id=f"skill:{at:05}",
            capability=f"skill {at}",
            layer="skill",
            applies_to=(f"tool:{chance.randrange(tools):05}",) if at % 4 == 0 else (),
            tags=tuple(chance.sample(TAGS, 3)),
        )
        for at in range(tools // 2)
    ]
    return entries, skills


def cpu_ms(run: Callable[[], Any], *, repeats: int = 25) -> float:
    """The CPU of the cheapest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def measured(size: int, *, everything: bool) -> tuple[float, Linked]:
    """The milliseconds of one link, and what it found."""
    entries, skills = registry(size)
    ids = list(entries)
    needs = ids if everything else ids[-NEEDS:]

    def run() -> Linked:
        return link(needs, entries, skills=skills, tags=("tag3", "tag5"), model="m")

    gc.collect()
    gc.disable()
    found = cpu_ms(run, repeats=9 if everything else 25)
    gc.enable()
    return found, run()


def main() -> int:
    """Measure every size."""
    options = arguments(str(__doc__).splitlines()[0])
    report = Report("Linking a mission, in milliseconds of CPU")
    each: dict[bool, list[float]] = {False: [], True: []}
    for everything in (False, True):
        for size in SIZES:
            ms, found = measured(size, everything=everything)
            each[everything].append(ms / size)
            note = f"{len(found.order)} tools, {len(found.skills)} skills are linked"
            asked = "all" if everything else str(NEEDS)
            what = f"{asked} needs of {size:,} tools, {size // 2:,} skills"
            budget = f"<= {MOST_MS:g} ms" if size == SIZES[1] else "-"
            met = ms <= MOST_MS if size == SIZES[1] else True
            report.judged(what, "milliseconds", ms, budget=budget, met=met, note=note)
        growth = each[everything][-1] / each[everything][1]
        what = f"CPU an entry at {SIZES[-1]:,}, {'all' if everything else NEEDS} needs"
        report.slower(what, f"at {SIZES[1]:,}", growth, at_most=NEAR_LINEAR)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
