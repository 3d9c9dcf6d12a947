"""The health of an entry: its states, and the rules by which it changes from one to another.

```
pending ──tests pass──▶ green ──tests fail, calls fail──▶ red ──tests pass──▶ green
   │                      │ ▲                              ▲
   └─tests fail─▶ rejected └─┴─── flaky ───calls fail──────┘
```

No tests is not green: a base tool without them is `unverified`, may become `flaky` by its calls and
comes back by them, and never `red`. What is down is `unavailable`, which says nothing of its
quality and is not kept: it is what the moment says.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from remit.features.registry.entry import HealthState

LOOKED_AT = 10
"""Of the calls that count, the latest so many are looked at."""
IN_A_ROW = 3
"""Failures, one after the other, that put it in quarantine."""
BROKEN = 0.3
"""A rate below which it goes in quarantine, of at least `IN_A_ROW` calls."""
SHAKY = 0.5
STEADY = 0.7
"""Flaky below the first, itself again only above the second: it does not flicker in between."""
ENOUGH = 5
"""Calls before a rate makes anything flaky."""

QUARANTINED: frozenset[HealthState] = frozenset({"red", "rejected"})
"""Those that are never chosen."""


class HealthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one entry, why, and since when."""

    state: HealthState = "unverified"
    reason: str = "it has no tests"
    at: float = 0.0
    has_tests: bool = False
    was_green: bool = False
    """Only what was proved once, or has tests, can be broken by calls."""
    mended_at: float = 0.0
    """Calls before this belong to what it was before its repair."""

    def to_json(self) -> dict[str, Any]:
        """As callers see it."""
        return {"state": self.state, "reason": self.reason, "at": self.at}


UNVERIFIED = HealthRecord()


def submitted(*, at: float) -> HealthRecord:
    """What was proposed and has not been tested yet."""
    return HealthRecord(
        state="pending", reason="its tests have not run yet", at=at, has_tests=True, mended_at=at
    )


def after_tests(record: HealthRecord, *, passed: bool, at: float, reason: str = "") -> HealthRecord:
    """The health after a run of all its tests."""
    at = max(at, record.at)  # a clock that goes back changes no order
    if passed:
        return HealthRecord(
            state="green",
            reason=reason or "all its tests pass",
            at=at,
            has_tests=True,
            was_green=True,
            mended_at=at,
        )
    never_worked = record.state in ("pending", "rejected") and not record.was_green
    return msgspec.structs.replace(
        record,
        state="rejected" if never_worked else "red",
        reason=reason or "a test fails",
        at=at,
        has_tests=True,
    )


def after_calls(record: HealthRecord, outcomes: Sequence[bool], *, at: float) -> HealthRecord:
    """The health after a call that counts.

    Args:
        record: the health so far.
        outcomes: whether the calls since `mended_at` did their work, the latest last.
        at: when the latest was.
    """
    if record.state not in ("unverified", "green", "flaky"):
        return record  # in quarantine only tests, or a word of an operator, change anything
    latest = outcomes[-LOOKED_AT:]
    state, reason = _judged(record, latest)
    if state == record.state:
        return record
    return msgspec.structs.replace(record, state=state, reason=reason, at=max(at, record.at))


def _judged(record: HealthRecord, latest: Sequence[bool]) -> tuple[HealthState, str]:
    rate = smoothed(sum(latest), len(latest))
    said = f"{sum(latest)} of its last {len(latest)} calls worked"
    if (record.has_tests or record.was_green) and _is_broken(latest, rate):
        return "red", said
    if record.state != "flaky" and len(latest) >= ENOUGH and rate < SHAKY:
        return "flaky", said
    if record.state == "flaky" and rate > STEADY:
        return ("green", said) if record.was_green else ("unverified", UNVERIFIED.reason)
    return record.state, record.reason


def _is_broken(latest: Sequence[bool], rate: float) -> bool:
    if len(latest) < IN_A_ROW:
        return False
    return not any(latest[-IN_A_ROW:]) or rate < BROKEN


def marked(
    record: HealthRecord, *, is_healthy: bool, at: float, by: str, reason: str = ""
) -> HealthRecord:
    """The health that somebody who may say so gave it."""
    word = f"{by} said so" + (f": {reason}" if reason else "")
    return msgspec.structs.replace(
        record,
        state="green" if is_healthy else "red",
        reason=word,
        at=max(at, record.at),
        was_green=record.was_green or is_healthy,
        mended_at=max(at, record.at) if is_healthy else record.mended_at,
    )


def now(record: HealthRecord, *, unavailable_because: str = "") -> HealthRecord:
    """The health at this moment: what is down is unavailable, unless it is in quarantine anyway."""
    if not unavailable_because or record.state in QUARANTINED:
        return record
    return msgspec.structs.replace(record, state="unavailable", reason=unavailable_because)


def smoothed(successes: float, trials: float) -> float:
    """The rate of successes, as if there had been one more success and one more failure."""
    return (successes + 1) / (trials + 2)
