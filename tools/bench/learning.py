"""How well the registry learns which implementation to take in which context.

Implementations have hidden true rates of success per context. Each policy chooses, sees how it went
and chooses again. Regret is what was lost against always taking the truly best one. The right one
is the best one, or one within 0.05 of it, which nobody could tell apart in 50 trials.

Two kinds of worlds: `specialists` are good everywhere, better in their own contexts and bad in one;
in `noise` every rate of every context is drawn by itself, so that being good elsewhere says nothing
and the first half of the score, the overall rate, can only mislead.
"""

import math
import random
import sys
from collections.abc import Callable

from report import Report, arguments, use_checkout

use_checkout()

from remit.features.registry.resolve import Candidate, Rate, resolve  # noqa: E402 - after the path

IMPLEMENTATIONS, CONTEXTS, WORLDS = 4, 5, 200
ROUNDS = 2_000
TRIALS = 50
"""Of each implementation in each context, before somebody chooses."""
EXPLORATION = 10
RIGHT = 0.95
AS_GOOD = 0.05
SLOW = 0.02
"""The share of the latest outcome in a slow average."""

World = list[list[float]]
"""By implementation, by context."""


def specialists(chance: random.Random) -> World:
    """Each is usually good, better in its own contexts, and bad in one."""
    world = [[chance.uniform(0.55, 0.75) for _ in range(CONTEXTS)] for _ in range(IMPLEMENTATIONS)]
    for context in range(CONTEXTS):
        best, bad = chance.sample(range(IMPLEMENTATIONS), 2)
        world[best][context] = chance.uniform(0.88, 0.98)
        world[bad][context] = chance.uniform(0.05, 0.3)
    return world


def noise(chance: random.Random) -> World:
    """Every rate by itself."""
    return [[chance.random() for _ in range(CONTEXTS)] for _ in range(IMPLEMENTATIONS)]


class Counts:
    """What was seen so far; every policy is given the same."""

    def __init__(self) -> None:
        self.seen = [[[0, 0] for _ in range(CONTEXTS)] for _ in range(IMPLEMENTATIONS)]
        self.slow = [0.5] * IMPLEMENTATIONS
        self.rounds = 0

    def record(self, which: int, context: int, worked: bool) -> None:  # noqa: FBT001 - an outcome
        """Take note of one trial."""
        self.seen[which][context][0 if worked else 1] += 1
        self.slow[which] += SLOW * (worked - self.slow[which])
        self.rounds += 1

    def overall(self, which: int) -> Rate:
        """Over all contexts."""
        good = sum(each[0] for each in self.seen[which])
        bad = sum(each[1] for each in self.seen[which])
        return Rate((good + 1) / (good + bad + 2), good + bad)

    def by_tag(self, which: int) -> dict[str, Rate]:
        """Those contexts that it was tried in."""
        found = enumerate(self.seen[which])
        return {
            str(at): Rate((good + 1) / (good + bad + 2), good + bad)
            for at, (good, bad) in found
            if good + bad
        }


Policy = Callable[[Counts, int], int]


def registry(counts: Counts, context: int, exploration: int = 0) -> int:
    """Ours."""
    candidates = [
        Candidate(id=str(at), overall=counts.overall(at), by_tag=counts.by_tag(at))
        for at in range(IMPLEMENTATIONS)
    ]
    return int(resolve(candidates, (str(context),), exploration=exploration)[0].id)


def exploring(counts: Counts, context: int) -> int:
    """Ours, by a planner that explores."""
    return registry(counts, context, EXPLORATION)


def best_overall(counts: Counts, _context: int) -> int:
    """The highest rate over all contexts."""
    return max(range(IMPLEMENTATIONS), key=lambda at: counts.overall(at).rate)


def ucb1(counts: Counts, _context: int) -> int:
    """The textbook bandit, which knows no context."""

    def bound(at: int) -> float:
        tried = counts.overall(at).n
        if not tried:
            return math.inf
        return counts.overall(at).rate + math.sqrt(2 * math.log(counts.rounds) / tried)

    return max(range(IMPLEMENTATIONS), key=bound)


def slow_average(counts: Counts, _context: int) -> int:
    """A moving average of what each did lately."""
    return max(range(IMPLEMENTATIONS), key=lambda at: counts.slow[at])


POLICIES: dict[str, Policy] = {
    "registry": registry,
    f"registry, exploration {EXPLORATION}": exploring,
    "best overall": best_overall,
    "UCB1": ucb1,
    "slow average": slow_average,
}


def is_right(world: World, context: int, chosen: int) -> bool:
    """Tell whether nothing is clearly better."""
    return max(one[context] for one in world) - world[chosen][context] <= AS_GOOD


def after_trials(make: Callable[[random.Random], World]) -> dict[str, float]:
    """The share of right choices of each policy, after the same trials of everything."""
    right = dict.fromkeys(POLICIES, 0)
    for seed in range(WORLDS):
        chance = random.Random(seed)  # noqa: S311 - the same worlds each time
        world, counts = make(chance), Counts()
        for _ in range(TRIALS):
            for which, rates in enumerate(world):
                for context, rate in enumerate(rates):
                    counts.record(which, context, chance.random() < rate)
        for name, policy in POLICIES.items():
            for context in range(CONTEXTS):
                right[name] += is_right(world, context, policy(counts, context))
    return {name: count / WORLDS / CONTEXTS for name, count in right.items()}


def regrets(make: Callable[[random.Random], World], policy: Policy) -> tuple[float, float]:
    """The mean regret a choice, in the first and in the last fifth of the rounds."""
    fifth, first, last = ROUNDS // 5, 0.0, 0.0
    worlds = WORLDS // 10
    for seed in range(worlds):
        chance = random.Random(10_000 + seed)  # noqa: S311 - as above
        world, counts = make(chance), Counts()
        for at in range(ROUNDS):
            context = chance.randrange(CONTEXTS)
            which = policy(counts, context)
            lost = max(one[context] for one in world) - world[which][context]
            first += lost if at < fifth else 0.0
            last += lost if at >= ROUNDS - fifth else 0.0
            counts.record(which, context, chance.random() < world[which][context])
    return first / fifth / worlds, last / fifth / worlds


def main() -> int:
    """Play all policies in both kinds of worlds."""
    options = arguments(str(__doc__).splitlines()[0])
    report = Report(f"Learning by {IMPLEMENTATIONS} implementations in {CONTEXTS} contexts")
    for make in (specialists, noise):
        kind = make.__name__
        for name, share in after_trials(make).items():
            is_asked = (kind, name) == ("specialists", "registry")
            what = f"right after {TRIALS} trials each: {name}"
            budget = f">= {RIGHT:g}" if is_asked else "-"
            report.judged(what, kind, share, budget=budget, met=not is_asked or share >= RIGHT)
        for name, policy in POLICIES.items():
            first, last = regrets(make, policy)
            is_asked = name.startswith("registry, ")
            what = f"regret a choice, last fifth of {ROUNDS:,}: {name}"
            note = f"first fifth {first:.3f}"
            budget = "< first fifth" if is_asked else "-"
            met = not is_asked or last < first
            report.judged(what, kind, last, budget=budget, met=met, note=note)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
