"""The retrieval benchmark: its figures are those of a hand calculation, in whatever folder."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import remit
import remit_client

BENCH = Path(__file__).parents[2] / "tools" / "bench" / "retrieval.py"
METRICS = ("ndcg@5", "recall@5", "recall@10", "mrr")
PEERS = ["bm25s", "rank_bm25", "keywords", "vectors"]
TOOLS = [
    {"id": "a", "name": "apple", "description": "apple", "params": [], "tags": []},
    {"id": "b", "name": "banana", "description": "banana"},
    {"id": "c", "name": "cherry", "description": "cherry"},
]


def folder_of(path: Path, tools: list[Any], queries: list[Any]) -> Path:
    path.mkdir()
    for name, rows in (("tools", tools), ("queries", queries)):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def ran(*arguments: object) -> "subprocess.CompletedProcess[str]":
    sources = [str(Path(package.__path__[0]).parent) for package in (remit, remit_client)]
    return subprocess.run(  # noqa: S603 - our own benchmark
        [sys.executable, str(BENCH), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sources)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def measured(folder: Path, *arguments: object) -> tuple[dict[str, Any], str]:
    """The one object that is printed, and the remarks beside it."""
    done = ran(folder, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    figures: dict[str, Any] = json.loads(line)
    return figures, done.stderr


def test_the_figures_are_those_of_a_hand_calculation(tmp_path: Path) -> None:
    queries = [
        {"id": "1", "text": "apple", "relevant": ["a"]},  # found first
        {"id": "2", "text": "apple apple banana", "relevant": ["b"]},  # found second, after apple
        {"id": "3", "text": "cherry", "relevant": ["c", "a"]},  # one of two, first
        {"id": "4", "text": "banana", "relevant": ["c"]},  # not found
    ]
    figures, _ = measured(folder_of(tmp_path / "fruit", TOOLS, queries), "--ranker", "bm25f")
    second = 1 / math.log2(3)
    assert figures["ndcg@5"] == pytest.approx(25 * (1 + second + 1 / (1 + second)), abs=0.01)
    assert figures["recall@5"] == pytest.approx(100 * (1 + 1 + 0.5) / 4, abs=0.01)
    assert figures["recall@10"] == figures["recall@5"]
    assert figures["mrr"] == pytest.approx(100 * (1 + 0.5 + 1) / 4, abs=0.01)


def test_places_below_the_fifth_count_for_recall_at_ten_alone(tmp_path: Path) -> None:
    tools = [{"id": f"t{at}", "name": f"t{at}", "description": "apple"} for at in range(12)]
    # Equal ones stand in the order of their ids: t0 t1 t10 t11 t2 t3 … t9.
    queries = [{"text": "apple", "relevant": ["t3", "t8"]}]
    figures, _ = measured(folder_of(tmp_path / "alike", tools, queries), "--ranker", "bm25f")
    assert [figures[name] for name in METRICS] == [0, 0, 50, pytest.approx(16.67)]


def test_the_object_has_exactly_the_keys_that_were_promised(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "fruit", TOOLS, [{"text": "apple", "relevant": ["a"]}])
    figures, said = measured(folder)
    assert list(figures) == ["set", "ranker", "queries", *METRICS, "ms_per_query", "peers"]
    assert (figures["set"], figures["ranker"], figures["queries"]) == ("fruit", "default", 1)
    assert list(figures["peers"]) == PEERS
    for name, peer in figures["peers"].items():
        assert list(peer) in ([*METRICS, "ms_per_query"], ["missing"])
        assert ("missing" in peer) == (f"{name} was not measured" in said)


def test_a_folder_in_a_bad_state_is_measured_and_said_to_be_so(tmp_path: Path) -> None:
    tools = [
        {"id": "a", "name": "apple", "description": "apple", "params": None, "tags": None},
        {"id": "a", "name": "banana", "description": "the same id again"},
        {"id": 7, "name": None, "description": None, "params": {"size": "how long a cherry is"}},
        {"id": "tool:a", "name": '../"; DROP\u2028\ud83d', "params": ["x", {"type": "int"}]},
        {"id": "schema", "params": {"type": "object", "properties": {"plum": {"type": "string"}}}},
        {"id": None, "name": ""},
        "not json",
        "",
        "[1]",
    ]
    queries = [
        {"text": "apple", "relevant": ["a", "gone"]},
        {"text": "cherry", "relevant": 7},
        {"text": "plum", "relevant": "schema"},
        {"text": "", "relevant": ["a"]},
        {"text": None, "relevant": ["a"]},
        {"text": "banana", "relevant": ["gone"]},
        {"text": "banana"},
    ]
    figures, said = measured(folder_of(tmp_path / "bad", tools, queries))
    assert (figures["queries"], figures["ndcg@5"]) == (3, 100)
    assert "1 tools of an id that was there before" in said
    assert "1 tools without id and name" in said
    assert "2 lines of tools.jsonl" in said
    assert "2 relevant ids that no tool has" in said
    assert "2 queries without a text" in said
    assert "2 queries without a tool of this set" in said


def test_examples_help_and_never_hold_the_words_of_a_judged_query(tmp_path: Path) -> None:
    strange = [{"text": f"wobble {word}", "relevant": ["c"]} for word in ("up", "down", "in", "on")]
    folder = folder_of(tmp_path / "learning", TOOLS, strange)
    without, _ = measured(folder, "--ranker", "bm25f")
    taught, _ = measured(folder, "--ranker", "bm25f", "--history", 1)
    assert (without["ndcg@5"], without["queries"]) == (0, 4)
    assert (taught["ndcg@5"], taught["queries"]) == (100, 2)
    same = [{"text": text, "relevant": ["c"]} for text in ("wobble", "Wobble ", "wobble", "WOBBLE")]
    held, _ = measured(
        folder_of(tmp_path / "same", TOOLS, same), "--ranker", "bm25f", "--history", 9
    )
    assert held["ndcg@5"] == 0


def test_several_folders_give_a_row_each(tmp_path: Path) -> None:
    queries = [{"text": "apple", "relevant": ["a"]}]
    folders = [folder_of(tmp_path / name, TOOLS, queries) for name in ("one", "two")]
    done = ran(*folders)
    assert done.returncode == 0, done.stderr
    firsts = [line.split()[:3] for line in done.stdout.splitlines() if line.strip()]
    assert ["one", "1", "100.0"] in firsts
    assert ["two", "1", "100.0"] in firsts


@pytest.mark.parametrize("queries", [[], [{"text": "apple", "relevant": []}]])
def test_a_folder_without_anything_to_judge_by_is_refused(
    tmp_path: Path, queries: list[Any]
) -> None:
    done = ran(folder_of(tmp_path / "empty", TOOLS, queries))
    assert done.returncode == 2
    assert "no query" in done.stderr


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = ran(tmp_path / "nowhere", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "tools.jsonl" in done.stderr
