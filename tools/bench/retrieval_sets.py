"""Labelled sets of tools and requests: reading a folder, whatever state it is in, and judging.

What cannot be used is left out and said, never guessed: a set that was quietly repaired would give
figures that nobody else can reproduce.
"""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from remit.model.descriptor import Descriptor, Parameter, parameters_of

DEPTH = 100
"""How far down a ranking is read; the mean reciprocal rank ends there."""
METRICS = ("ndcg@5", "recall@5", "recall@10", "mrr")
_PREFIX = "tool:"


class Query(msgspec.Struct, frozen=True):
    """A request, and the ids of the tools that answer it."""

    text: str
    relevant: frozenset[str]


class LabelledSet(msgspec.Struct, frozen=True):
    """A folder as it was read."""

    name: str
    tools: tuple[Descriptor, ...]
    queries: tuple[Query, ...]
    said: tuple[str, ...]
    """What was left out, and why."""


def read_set(folder: Path) -> LabelledSet:
    """The tools and queries of a folder.

    Raises:
        OSError: a file cannot be read.
        ValueError: nothing in it can be used.
    """
    notes: Counter[str] = Counter()
    tools: dict[str, Descriptor] = {}
    for row in _rows(folder / "tools.jsonl", notes):
        tool = tool_of(row)
        if tool is None:
            notes["tools without id and name left out"] += 1
        elif tool.id in tools:
            notes["tools of an id that was there before left out"] += 1
        else:
            tools[tool.id] = tool
    queries = list(_queries(_rows(folder / "queries.jsonl", notes), tools, notes))
    if not queries:
        raise ValueError(f"{folder}: no query has a text and a relevant tool of this set")
    said = tuple(f"{count} {what}" for what, count in notes.items())
    return LabelledSet(folder.resolve().name, tuple(tools.values()), tuple(queries), said)


def _rows(path: Path, notes: Counter[str]) -> Iterator[dict[str, Any]]:
    # A line may hold a separator that ends a line elsewhere: only real line breaks count.
    for line in path.read_text(encoding="utf-8-sig", errors="replace").split("\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield row
        else:
            notes[f"lines of {path.name} that hold no object left out"] += 1


def tool_of(row: Mapping[str, Any]) -> Descriptor | None:
    """A tool as remit would describe it; None when it has neither id nor name."""
    known = _text(row.get("id")) or _text(row.get("name"))
    if not known:
        return None
    return Descriptor(
        id=_PREFIX + known,
        kind="tool",
        name=_text(row.get("name")) or known,
        description=_text(row.get("description")),
        category=_text(row.get("category")),
        server=_text(row.get("server")),
        tags=tuple(_texts(row.get("tags"))),
        parameters=_parameters(row.get("params")),
    )


def _parameters(value: Any) -> tuple[Parameter, ...]:
    """A list of names or objects, names with their texts, or a JSON Schema."""
    if isinstance(value, dict):
        if isinstance(value.get("properties"), dict):
            return parameters_of(value)
        value = [
            {"name": name, **(about if isinstance(about, dict) else {"description": about})}
            for name, about in value.items()
        ]
    rows = value if isinstance(value, list) else []
    named = [row if isinstance(row, dict) else {"name": row} for row in rows]
    return tuple(
        Parameter(name, _text(row.get("type")), _text(row.get("description")))
        for row in named
        if (name := _text(row.get("name")))
    )


def _queries(
    rows: Iterable[Mapping[str, Any]], tools: Mapping[str, Descriptor], notes: Counter[str]
) -> Iterator[Query]:
    for row in rows:
        text = _text(row.get("text"))
        named = {_PREFIX + one for one in _texts(row.get("relevant"))}
        relevant = frozenset(named & tools.keys())
        notes["relevant ids that no tool has left out"] += len(named - relevant)
        if not text.strip():
            notes["queries without a text left out"] += 1
        elif not relevant:
            notes["queries without a tool of this set left out"] += 1
        else:
            yield Query(text, relevant)
    for what in [what for what, count in notes.items() if not count]:
        del notes[what]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " | ".join(_texts(value))
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_plain else ""


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for one in values if not isinstance(one, list) and (text := _text(one))]


def parted(queries: Sequence[Query], size: int, seed: int) -> tuple[list[Query], list[Query]]:
    """The queries to judge by, drawn by lot, and all others."""
    drawn = list(queries)
    random.Random(seed).shuffle(drawn)  # noqa: S311 - no secret
    return drawn[:size], drawn[size:]


def examples_of(
    others: Iterable[Query], tested: Iterable[Query], most: int
) -> dict[str, tuple[str, ...]]:
    """Up to `most` requests for each tool; never one with the words of a tested query."""
    held = {_alike(query.text) for query in tested}
    found: dict[str, list[str]] = {}
    for query in others:
        for one in query.relevant if _alike(query.text) not in held else ():
            known = found.setdefault(one, [])
            if len(known) < most and query.text not in known:
                known.append(query.text)
    return {one: tuple(texts) for one, texts in found.items()}


def _alike(text: str) -> str:
    return " ".join(text.casefold().split())


def judged(
    rank: Callable[[str], Sequence[str]],
    queries: Sequence[Query],
    clock: Callable[[], float],
    patience: float = math.inf,
) -> dict[str, float]:
    """The metrics of a ranker over queries, from 0 to 100, and the milliseconds of one query.

    Raises:
        TimeoutError: it took longer than `patience`, by that clock.
    """
    started = clock()
    rankings: list[Sequence[str]] = []
    for query in queries:
        if clock() - started > patience:
            done = f"at {len(rankings)} of {len(queries)} queries"
            raise TimeoutError(f"stopped after {patience:g} s of CPU, {done}")
        rankings.append(rank(query.text))
    spent = clock() - started
    sums = dict.fromkeys(METRICS, 0.0)
    for found, query in zip(rankings, queries, strict=True):
        for name, value in metrics_of(found, query.relevant).items():
            sums[name] += value
    means = {name: round(100 * total / len(queries), 2) for name, total in sums.items()}
    return means | {"ms_per_query": round(1000 * spent / len(queries), 3)}


def metrics_of(found: Sequence[str], relevant: frozenset[str]) -> dict[str, float]:
    """The metrics of one ranking, from 0 to 1."""
    first = next((place for place, one in enumerate(found, 1) if one in relevant), None)
    return {
        "ndcg@5": _gain(found[:5], relevant) / _gain(list(relevant)[:5], relevant),
        "recall@5": len(relevant.intersection(found[:5])) / len(relevant),
        "recall@10": len(relevant.intersection(found[:10])) / len(relevant),
        "mrr": 1 / first if first else 0.0,
    }


def _gain(found: Sequence[str], relevant: frozenset[str]) -> float:
    return sum(1 / math.log2(place + 1) for place, one in enumerate(found, 1) if one in relevant)
