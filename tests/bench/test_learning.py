"""What the benchmarks of the registry claim, in small: it learns, and a link stays cheap."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from remit.features.registry.resolve import Candidate, Rate, resolve

BENCH = Path(__file__).parents[2] / "tools" / "bench"


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_a_context_is_chosen_after_fifty_trials_of_each(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same worlds each time
    true = {"broad": (0.75, 0.7), "here": (0.55, 0.95), "nowhere": (0.6, 0.2)}
    candidates = []
    for id_, rates in true.items():
        good = [sum(chance.random() < rate for _ in range(50)) for rate in rates]
        tried = {tag: Rate((n + 1) / 52, 50) for tag, n in zip(("x", "y"), good, strict=True)}
        overall = Rate((sum(good) + 1) / 102, 100)
        candidates.append(Candidate(id=id_, overall=overall, by_tag=tried))
    assert resolve(candidates, ("y",))[0].id == "here"


@pytest.mark.parametrize("name", ["link", "learning"])
def test_a_benchmark_of_the_registry_says_what_it_measures(name: str) -> None:
    command = [sys.executable, str(BENCH / f"{name}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert "--json" in done.stdout
