"""How true the relevance of a hit is: who is shown something, and is it as likely as it says.

    relevance.py [DATADIR …] [--ranker default|bm25f|minilm] [--fit] [--json FILE]

Requests of each set are asked of its own tools (a right tool exists) and of the tools of all other
sets (none was made for them, though some of those do serve: the sets overlap), and small talk is
asked of all. A set of thousands of tools is also asked in part, as a catalogue of usual size. With
`--fit` the table `features/discovery/relevance.json` is written anew for this ranker, from one half
of the requests; what is printed is always measured on the other half.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from report import table, use_checkout

# This folder holds a socket.py: everybody else must find the one of Python.
sys.path.append(sys.path.pop(sys.path.index(str(Path(__file__).resolve().parent))))
use_checkout()

from retrieval_rankers import MODELS, model_of  # noqa: E402 - after the path
from retrieval_sets import LabelledSet, Query, read_set, tool_of  # noqa: E402

from remit.app.workbench import open_workbench  # noqa: E402
from remit.config.settings.load import load_settings  # noqa: E402
from remit.features.discovery.descriptors import event_descriptors  # noqa: E402
from remit.features.discovery.embedding import Embedder, VectorCache, np  # noqa: E402
from remit.features.discovery.index import Indexer  # noqa: E402
from remit.features.discovery.rank import Ranker, best  # noqa: E402
from remit.features.discovery.relevance import (  # noqa: E402
    TABLE,
    WORDS_ALONE,
    RankSignals,
    calibrations,
)
from remit.features.discovery.view import View  # noqa: E402
from remit.features.skills.directories import (  # noqa: E402
    CapabilityDirectory,
    DirectoryScanner,
)
from remit.model.descriptor import Descriptor  # noqa: E402

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1].parent / "shared" / "data"
SMALL_TALK = HERE / "data" / "small_talk.txt"
OWN, FOREIGN = 400, 100
"""Requests of each set, asked of its own tools and of each other catalogue."""
PARTS = (30, 100, 400)
"""Sizes of the catalogues that are cut from a set of thousands."""
LARGE = 1_000
ROWS = 8
"""Rows of a ranking that the fit looks at."""
SHOWN = 5
LEAST = 0.3
GOALS = {"foreign": 15.0, "small talk": 5.0, "kept": 96.0, "error": 0.08}


class Case(NamedTuple):
    """One request asked of one catalogue."""

    catalogue: str
    kind: str
    """`own`, `foreign` or `small talk`."""
    signals: RankSignals
    right: tuple[bool, ...]
    """Of each row, whether it is a right tool."""
    named: bool
    """The request names a tool in full: then nothing is estimated."""
    half: int


class Catalogue(NamedTuple):
    """Tools, and the requests that they were made for."""

    name: str
    tools: Sequence[Descriptor]
    own: Sequence[Query]
    sets: frozenset[str]
    """Sets whose requests are not foreign here."""


def catalogues(sets: Sequence[LabelledSet]) -> Iterator[Catalogue]:
    """Every set, parts of large ones, and the tools of real servers; equal tools are asked once."""
    by_tools: dict[frozenset[str], list[LabelledSet]] = {}
    for data in sets:
        by_tools.setdefault(frozenset(tool.id for tool in data.tools), []).append(data)
    for group in by_tools.values():
        names = frozenset(data.name for data in group)
        own = [query for data in group for query in _drawn(data.queries, OWN, 11)]
        yield Catalogue(group[0].name, group[0].tools, own, names)
        if len(group[0].tools) >= LARGE:
            yield from _parts(group[0], names)
    yield Catalogue("builtin", _built_in(), _requests("builtin"), frozenset())
    served = list(_served())
    if served:
        yield Catalogue("servers", served, _requests("servers"), frozenset())
    skills = DirectoryScanner().scan([CapabilityDirectory(DATA / "skills", "user")]).descriptors
    if skills:
        yield Catalogue("skills", skills, (), frozenset())


def _requests(name: str) -> list[Query]:
    """Requests that were written for tools that no labelled set has."""
    lines = (HERE / "data" / f"requests_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Query(row["text"], frozenset(f"tool:{one}" for one in row["relevant"])) for row in rows]


def _built_in() -> list[Descriptor]:
    """The events of remit itself."""
    with tempfile.TemporaryDirectory() as empty:
        bench = open_workbench(load_settings({"home": empty}, {}, empty), with_handlers=True)
        return event_descriptors(bench.handlers, bench.catalogue)


def _parts(data: LabelledSet, names: frozenset[str]) -> Iterator[Catalogue]:
    for size in PARTS:
        queries = _drawn(data.queries, size // 3, size)
        needed = {one for query in queries for one in query.relevant}
        others = _drawn([tool for tool in data.tools if tool.id not in needed], size, size)
        tools = [tool for tool in data.tools if tool.id in needed]
        tools += others[: max(0, size - len(tools))]
        yield Catalogue(f"{data.name}/{size}", tools, queries, names)


def _served() -> Iterator[Descriptor]:
    for path in sorted((DATA / "mcp_tools").glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["tools"]:
            told = {**row, "id": f"{path.stem}/{row['name']}", "server": path.stem}
            tool = tool_of(told | {"params": row.get("inputSchema")})
            if tool is not None:
                yield tool


def _drawn(rows: Sequence[Any], count: int, seed: int) -> list[Any]:
    drawn = list(rows)
    random.Random(seed).shuffle(drawn)  # noqa: S311 - no secret
    return drawn[:count]


def cases(sets: Sequence[LabelledSet], model: Embedder | None) -> list[Case]:
    """Every request asked of every catalogue."""
    talk = SMALL_TALK.read_text(encoding="utf-8").splitlines()
    found: list[Case] = []
    ranker, cache = Ranker(model), VectorCache()  # slow models meet the same texts again
    for each in catalogues(sets):
        index = Indexer(model, cache).build(each.tools)
        view = View(index, np.ones(len(index), np.bool_))
        asked = [("own", query) for query in each.own]
        for data in sets:
            if data.name not in each.sets:
                drawn = _drawn(data.queries, FOREIGN, 5)
                asked += [("foreign", Query(query.text, frozenset())) for query in drawn]
        asked += [("small talk", Query(text, frozenset())) for text in talk]
        for at, (kind, query) in enumerate(asked):
            ranking = ranker.rank(view, query.text, view.allowed)
            rows = best(ranking.fused, view, ROWS, 0.0)
            right = tuple(index.descriptors[row].id in query.relevant for row in rows)
            signals = ranking.signals(rows)
            found.append(Case(each.name, kind, signals, right, bool(ranking.named), at % 2))
    return found


# ---- the fit ----


def fitted(found: Sequence[Case]) -> dict[str, Any]:
    """A line of the table, from these cases; each catalogue and kind of request weighs the same."""
    used = [case for case in found if len(case.signals.rows) and not case.named]
    counts = Counter((case.catalogue, case.kind) for case in used)
    share = {"own": 1.0, "foreign": 1.0, "small talk": 0.5}
    weights = [share[one.kind] * 200 / counts[one.catalogue, one.kind] for one in used]
    rows = np.vstack([case.signals.of_rows() for case in used])
    right = np.array([one for case in used for one in case.right], np.float64)
    each = np.repeat(weights, [len(case.right) for case in used])
    asked = np.stack([case.signals.of_request() for case in used])
    answered = np.array([case.kind == "own" for case in used], np.float64)
    return {
        "row": _regression(rows, right, each),
        "fits": _regression(asked, answered, np.array(weights)),
    }


def _regression(lines: Any, answers: Any, weights: Any) -> dict[str, Any]:
    """Logistic regression by Newton's method, with a little ridge; weights of the raw signals."""
    lines = lines.astype(np.float64)
    middle, spread = lines.mean(axis=0), lines.std(axis=0) + 1e-9
    scaled = np.hstack([(lines - middle) / spread, np.ones((len(lines), 1))])
    ridge = np.diag([3.0] * lines.shape[1] + [1e-6])
    found = np.zeros(scaled.shape[1])
    for _ in range(60):
        chance = 1 / (1 + np.exp(-scaled @ found))
        slope = scaled.T @ (weights * (chance - answers)) + ridge @ found
        bend = (scaled * (weights * chance * (1 - chance))[:, None]).T @ scaled + ridge
        step = np.linalg.solve(bend, slope)
        found -= step
        if abs(step).max() < 1e-7:  # noqa: PLR2004 - it stands still
            break
    raw = found[:-1] / spread
    bias = float(found[-1] - raw @ middle)
    return {"weights": [round(float(one), 4) for one in raw], "bias": round(bias, 4)}


# ---- the measure ----


def measured(found: Sequence[Case], model: str) -> list[dict[str, Any]]:
    """A row a catalogue, and one for all."""
    line = calibrations().get(model, calibrations()[WORDS_ALONE])
    judged = []
    for case in found:
        chances, fits = line.relevance(case.signals)
        if case.named:
            fits = 1.0
        judged.append((case, chances, fits))
    names = dict.fromkeys(case.catalogue for case in found)
    rows = [_row(name, [one for one in judged if one[0].catalogue == name]) for name in names]
    return [*rows, _row("all", judged)]


def _row(name: str, judged: Sequence[tuple[Case, Any, float]]) -> dict[str, Any]:
    def shown(kind: str) -> float | None:
        passed = [fits >= LEAST for case, _chances, fits in judged if case.kind == kind]
        return 100 * sum(passed) / len(passed) if passed else None

    kept = []
    pairs = []
    for case, chances, fits in judged:
        order = np.argsort(-chances, kind="stable")[:SHOWN]
        if any(case.right[:SHOWN]):
            kept.append(fits >= LEAST and any(case.right[at] for at in order))
        if not case.named and fits >= LEAST:
            pairs += [(float(chances[at]), case.right[at]) for at in order]
    bins = _bins(pairs)
    error = sum(one["hits"] * abs(one["said"] - one["right"]) for one in bins)
    return {
        "catalogue": name,
        "foreign": shown("foreign"),
        "small talk": shown("small talk"),
        "kept": 100 * sum(kept) / len(kept) if kept else None,
        "error": error / max(1, len(pairs)),
        "bins": bins,
    }


def _bins(pairs: Sequence[tuple[float, bool]]) -> list[dict[str, Any]]:
    found = []
    for at in range(10):
        inside = [one for one in pairs if at / 10 <= one[0] < (at + 1) / 10 + (at == 9)]  # noqa: PLR2004
        if inside:
            said, right = (sum(one[side] for one in inside) / len(inside) for side in (0, 1))
            found.append({"from": at / 10, "hits": len(inside), "said": said, "right": right})
    return found


def print_tables(rows: Sequence[dict[str, Any]], ranker: str) -> bool:
    """What is shown to whom, and how true it is; the answer tells whether the goals were met."""
    lines, met = [], True
    for row in rows:
        verdicts = [
            (row[name] >= goal if name == "kept" else row[name] <= goal)
            for name, goal in GOALS.items()
            if row[name] is not None
        ]
        met &= row["catalogue"] != "all" or all(verdicts)
        cells = ["-" if row[name] is None else f"{row[name]:.1f}" for name in list(GOALS)[:3]]
        verdict = "met" if all(verdicts) else "MISSED"
        lines.append((row["catalogue"], *cells, f"{row['error']:.3f}", verdict))
    goals = ("goal", "<= 15", "<= 5", ">= 96", "<= 0.08", "")
    head = ("catalogue", "foreign shown %", "small talk shown %", "right kept %", "error", "")
    print(table(f"relevance, ranker {ranker}", head, [*lines, goals]))
    bins = [
        (f"{one['from']:.1f}", str(one["hits"]), f"{one['said']:.3f}", f"{one['right']:.3f}")
        for one in rows[-1]["bins"]
    ]
    print(table("reliability of what is shown", ("from", "hits", "said", "right"), bins))
    return met


def main() -> int:
    """Measure; 1 says that a goal was missed, 2 that there was nothing to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="DATADIR")
    ranked = [name for name in MODELS if name != "vectors"]
    parser.add_argument("--ranker", choices=ranked, default="default")
    parser.add_argument("--fit", action="store_true", help="write the table anew for this ranker")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    folders = options.folders or sorted((DATA / "retrieval").glob("*"))
    try:
        sets = [read_set(folder) for folder in folders]
        model = model_of(options.ranker)
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    if not sets:
        print(f"no sets in {DATA / 'retrieval'}", file=sys.stderr)
        return 2
    found = cases(sets, model)
    name = model.name if model is not None else WORDS_ALONE
    if options.fit:
        known = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
        known[name] = fitted([case for case in found if case.half == 0])
        TABLE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    rows = measured([case for case in found if case.half], name)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0 if print_tables(rows, options.ranker) else 1


if __name__ == "__main__":
    sys.exit(main())
