"""Which implementation of a capability to take, in this context and for this model.

    score = weight of rate * rate + mean of its rates with the tags of the mission
            - 0.2 for each tag with which it mostly fails - 0.3 if it is flaky

A tag with which it was never tried counts 0: what is proved in this context beats what is only good
elsewhere. The weight of the rate over all contexts is 1 where nobody was tried in this one, and
fades for all candidates alike as they are: with equal weights for good, an implementation that is
good elsewhere beats the best one here. Everything that was added up is in the answer.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from remit.features.registry.entry import QUARANTINED, HealthState, Layer

TAG_PENALTY = 0.2
FLAKY_PENALTY = 0.3
FAILING = 0.3
"""A rate below which a tag is a warning."""
WARNED = 3
"""Trials with a tag before it is one."""
MODEL_RATE = 0.5
MODEL_TRIALS = 5
"""A skill with at least so many trials of a model, and a lower rate, is not given to that model."""
NEAR = 0.05
"""Scores within this are as good as equal to somebody who explores."""


class Rated(Protocol):
    """What was counted of something."""

    @property
    def rate(self) -> float:
        """(successes + 1) / (trials + 2)."""

    @property
    def n(self) -> float:
        """How many trials count."""


class Rate(msgspec.Struct, frozen=True):
    """A rate that is known."""

    rate: float = 0.5
    n: float = 0.0


UNTRIED = Rate()
FADING = 5.0
"""Trials in this context, on average over the candidates, that halve the weight of the rate."""


class TrialCounts(Protocol):
    """What was counted of uses; without it nothing was ever tried."""

    def score(self, name: str) -> Rated:
        """Over all contexts."""

    def by_tag(self, name: str, tag: str) -> Rated:
        """With one tag."""

    def by_model(self, name: str, model: str) -> Rated:
        """With one model."""

    def calls(self, name: str) -> tuple[int, Sequence[bool]]:
        """How many calls count, and whether the latest worked, oldest first."""


class NoTrials:
    """Nothing was tried."""

    def score(self, name: str) -> Rated:
        """Nothing is known."""
        return UNTRIED

    def by_tag(self, name: str, tag: str) -> Rated:
        """Nothing is known."""
        return UNTRIED

    def by_model(self, name: str, model: str) -> Rated:
        """Nothing is known."""
        return UNTRIED

    def calls(self, name: str) -> tuple[int, Sequence[bool]]:
        """None were made."""
        return 0, ()


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An implementation or a skill, with what was counted of it."""

    id: str
    layer: Layer = "base"
    health: HealthState = "unverified"
    overall: Rated = UNTRIED
    by_tag: Mapping[str, Rated] = {}
    """Of the tags of the mission, those that it was tried with."""
    by_model: Rated | None = None
    """With the model of the mission."""


class Arithmetic(msgspec.Struct, frozen=True):
    """What a score was made of."""

    base: float
    """Its rate over all contexts."""
    weight: float
    """How much of that counts."""
    n: float
    affinity: float
    tags: Mapping[str, float]
    """The rate with each tag; 0 for one it was never tried with."""
    penalties: Mapping[str, float]
    """What was taken off for each tag, and for health."""
    model: float | None
    """Its rate with the model; None: it was never tried with it."""

    def to_json(self) -> dict[str, Any]:
        """As callers see it, rounded."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {name: _rounded(value) for name, value in found.items()}


class Resolved(msgspec.Struct, frozen=True):
    """One candidate with its score."""

    id: str
    score: float
    health: HealthState
    arithmetic: Arithmetic

    @property
    def retry(self) -> bool:
        """Tell whether a caller should count on trying it again."""
        return self.health == "flaky"

    def to_json(self) -> dict[str, Any]:
        """As callers see it."""
        return {
            "id": self.id,
            "score": round(self.score, 4),
            "health": self.health,
            "retry": self.retry,
            "arithmetic": self.arithmetic.to_json(),
        }


def resolve(
    candidates: Iterable[Candidate], tags: Sequence[str] = (), *, exploration: int = 0
) -> tuple[Resolved, ...]:
    """The candidates that may be chosen, best first; equal ones by id.

    Args:
        candidates: what there is to choose from, in any order.
        tags: those of the mission, folded.
        exploration: the best one gives way to one that may be as good and had fewer trials in this
            context than this; 0 for never.
    """
    fit = [one for one in candidates if _may_be_chosen(one)]
    tested = [one for one in fit if one.health != "pending"]
    wanted = sorted(set(tags))
    weight = _weight(tested or fit, wanted)
    found = sorted((_scored(one, wanted, weight) for one in tested or fit), key=_order)
    hopes = {one.id: _hope(one, wanted, exploration) for one in fit} if exploration else {}
    return tuple(_explored(found, hopes))


def _may_be_chosen(one: Candidate) -> bool:
    if one.health in QUARANTINED or one.health == "unavailable":
        return False
    return one.layer != "skill" or not fails_with_model(one.by_model)


def fails_with_model(rate: Rated | None) -> bool:
    """Tell whether a skill has done a model more harm than good, as far as enough trials say."""
    return rate is not None and rate.n >= MODEL_TRIALS and rate.rate < MODEL_RATE


def is_warning(rate: Rated) -> bool:
    """Tell whether somebody should be warned of a context in which something was tried."""
    return rate.n >= WARNED and rate.rate < FAILING


def _weight(candidates: Sequence[Candidate], tags: Sequence[str]) -> float:
    """How much the rates over all contexts count, the same for all of them."""
    tried = [one.by_tag[tag].n for one in candidates for tag in tags if tag in one.by_tag]
    mean = math.fsum(tried) / max(1, len(candidates) * len(tags))
    return FADING / (FADING + mean)


def _scored(one: Candidate, tags: Sequence[str], weight: float) -> Resolved:
    rates = {tag: one.by_tag[tag].rate if tag in one.by_tag else 0.0 for tag in tags}
    affinity = sum(rates.values()) / len(rates) if rates else 0.0
    penalties = {
        tag: TAG_PENALTY for tag in tags if tag in one.by_tag and is_warning(one.by_tag[tag])
    }
    taken = sum(penalties.values())
    if one.health == "flaky":
        penalties["health:flaky"] = FLAKY_PENALTY
        taken += FLAKY_PENALTY
    arithmetic = Arithmetic(
        base=one.overall.rate,
        weight=weight,
        n=one.overall.n,
        affinity=affinity,
        tags=rates,
        penalties=penalties,
        model=None if one.by_model is None else one.by_model.rate,
    )
    return Resolved(one.id, weight * one.overall.rate + affinity - taken, one.health, arithmetic)


def _order(one: Resolved) -> tuple[float, str]:
    return (-round(one.score, 9), one.id)  # sums in another order may differ in the last bit


def _hope(one: Candidate, tags: Sequence[str], trials: int) -> tuple[float, float] | None:
    """How seldom it was tried, and what its score would gain if it worked wherever it was not.

    None: it had its trials, or it is known to fail here. Without this hope nothing would ever be
    tried with a new tag, for which all but the first one that was tried count 0.
    """
    rates = [one.by_tag.get(tag, UNTRIED) for tag in tags] or [one.overall]
    if any(map(is_warning, rates)) or min(rate.n for rate in rates) >= trials:
        return None
    known = [one.by_tag[tag].rate if tag in one.by_tag else 0.0 for tag in tags]
    open_ = [1 - rate for rate, each in zip(known, rates, strict=False) if each.n < trials]
    return min(rate.n for rate in rates), sum(open_) / max(1, len(tags))


def _explored(
    found: list[Resolved], hopes: Mapping[str, tuple[float, float] | None]
) -> list[Resolved]:
    """The same, with the least tried of those that may be as good as the best one put first."""
    new = [
        (hope[0], _order(one), one)
        for one in found
        if (hope := hopes.get(one.id)) and found[0].score - one.score - hope[1] <= NEAR
    ]
    if not new:
        return found
    first = min(new, key=lambda each: each[:2])[2]
    return [first, *(one for one in found if one is not first)]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return value
