"""An entry of the registry: one implementation of a capability, or one skill.

A capability says what is done, an implementation how. A base tool is an event; a composed tool is
code over others; a skill is a text that a model knows. Every event and every skill is an entry by
itself; a declaration adds to it what cannot be read off it.

Its health has states, and rules by which it changes from one to another.

```
pending ──tests pass──▶ green ──tests fail, calls fail──▶ red ──tests pass──▶ green
   │                      │ ▲                              ▲
   └─tests fail─▶ rejected └─┴─── flaky ───calls fail──────┘
```

No tests is not green: a base tool without them is `unverified`, may become `flaky` by its calls and
comes back by them, and never `red`. What is down is `unavailable`, which says nothing of its
quality and is not kept: it is what the moment says.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from remit.errors import Place
from remit.model.descriptor import Descriptor, SourceRef
from remit.text.unicode import one_line

Layer = Literal["base", "composed", "skill"]
HealthState = Literal["unverified", "pending", "green", "flaky", "red", "rejected", "unavailable"]

TAG_LIMIT = 64
"""Characters of a tag."""
MOST_TAGS = 64
MOST_IDS = 256
ID_LIMIT = 256

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

Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=TAG_LIMIT)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_LIMIT)]
Tags = Annotated[tuple[Tag, ...], msgspec.Meta(max_length=MOST_TAGS)]
Ids = Annotated[tuple[Id, ...], msgspec.Meta(max_length=MOST_IDS)]


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool was given once, and what it answered."""

    input: Any = None
    output: Any = None
    note: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One implementation, or one skill."""

    id: str
    """That of its descriptor, as in 'tool:state:set' or 'skill:git'."""
    capability: str
    """What it does; several implementations may have one capability."""
    layer: Layer
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    """Folded by `tag`, sorted, each once."""
    event: str = ""
    """What is called; empty for skills."""
    applies_to: tuple[str, ...] = ()
    """Of a skill: ids or capabilities of the tools that it helps with."""
    dependencies: tuple[str, ...] = ()
    """Ids of the tools that it cannot do without."""
    supersedes: str = ""
    """The id of what it takes the place of."""
    version: str = ""
    examples: tuple[Example, ...] = ()
    variants: Mapping[str, str] = {}
    """Of a skill: by model, the id of the skill to give it instead."""
    conflicts_with: tuple[str, ...] = ()
    """Ids of skills that say something else."""
    available: bool = True
    unavailable_because: str = ""
    source: SourceRef = SourceRef("event")
    """Where its text is read, as of a descriptor."""
    declared_by: str = ""
    """Who declared what it does not say itself; empty: nobody, or a file."""
    place: Place | None = None
    """Where that is written; None: it was not read from a file."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is added to an entry that is there by itself; what is absent stays as it is."""

    id: Id
    capability: Annotated[str, msgspec.Meta(max_length=ID_LIMIT)] = ""
    description: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    tags: Tags = ()
    """Added to those that it has."""
    applies_to: Ids = ()
    dependencies: Ids = ()
    supersedes: Annotated[str, msgspec.Meta(max_length=ID_LIMIT)] = ""
    version: Annotated[str, msgspec.Meta(max_length=64)] = ""
    examples: Annotated[tuple[Example, ...], msgspec.Meta(max_length=32)] = ()
    variants: Annotated[dict[Id, Id], msgspec.Meta(max_length=64)] = {}
    conflicts_with: Ids = ()


def tag(text: str) -> str:
    """A tag as it is compared: in any case, width and composition of letters it is the same."""
    for _ in range(2):  # folding may compose letters that fold again
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return one_line(one_line(text)[:TAG_LIMIT])


def tags_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Tags folded, sorted and each once; empty ones are left out."""
    return tuple(sorted({folded for text in texts if (folded := tag(text))}))


def capability_of(id_: str) -> str:
    """The capability of an entry that declares none: its id without the kind."""
    return id_.partition(":")[2] or id_


def entry_of(descriptor: Descriptor) -> Entry | None:
    """The entry that a descriptor is by itself; None for what is neither tool nor skill."""
    is_skill = descriptor.kind == "skill"
    if not is_skill and not (descriptor.kind == "tool" and descriptor.event):
        return None
    return Entry(
        id=descriptor.id,
        capability=descriptor.event or capability_of(descriptor.id),
        layer="skill" if is_skill else "base",
        name=descriptor.name,
        description=descriptor.description,
        tags=tags_of((descriptor.category, descriptor.server, *descriptor.tags)),
        event=descriptor.event,
        applies_to=descriptor.composed_with if is_skill else (),
        available=descriptor.available,
        unavailable_because=descriptor.unavailable_because,
        source=descriptor.source,
    )


def declared(
    entry: Entry, declaration: Declaration, *, by: str = "", place: Place | None = None
) -> Entry:
    """The entry with what a declaration adds; tags are joined, all else is replaced."""
    given = {
        name: value
        for name in _REPLACED
        if (value := getattr(declaration, name))  # absent: it stays as it is
    }
    if declaration.tags:
        given["tags"] = tags_of((*entry.tags, *declaration.tags))
    return msgspec.structs.replace(entry, **given, declared_by=by, place=place)


_REPLACED = (
    *("capability", "description", "applies_to", "dependencies", "supersedes", "version"),
    *("examples", "variants", "conflicts_with"),
)


# ---- health ----


class HealthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one entry, why, and since when."""

    state: HealthState = "unverified"
    reason: str = "it has no tests"
    at: float = 0.0
    has_tests: bool = False
    was_green: bool = False
    """Only what was proved once, or has tests, can be broken by calls."""
    mended_after: int = 0
    """Of all its calls that count, the first so many belong to what it was before its repair."""

    def to_json(self) -> dict[str, Any]:
        """As callers see it."""
        return {"state": self.state, "reason": self.reason, "at": self.at}


UNVERIFIED = HealthRecord()


def submitted(*, at: float) -> HealthRecord:
    """What was proposed and has not been tested yet."""
    return HealthRecord(state="pending", reason="its tests have not run yet", at=at, has_tests=True)


def after_tests(
    record: HealthRecord, *, passed: bool, at: float, calls: int = 0, reason: str = ""
) -> HealthRecord:
    """The health after a run of all its tests; `calls`: how many of its calls counted so far."""
    at = max(at, record.at)  # a clock that goes back changes no order
    if passed:
        return HealthRecord(
            state="green",
            reason=reason or "all its tests pass",
            at=at,
            has_tests=True,
            was_green=True,
            mended_after=calls,
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
        outcomes: whether the calls after `mended_after` did their work, the latest last.
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
    record: HealthRecord, *, is_healthy: bool, at: float, by: str, calls: int = 0, reason: str = ""
) -> HealthRecord:
    """The health that somebody who may say so gave it; `calls`: how many counted so far."""
    word = f"{by} said so" + (f": {reason}" if reason else "")
    return msgspec.structs.replace(
        record,
        state="green" if is_healthy else "red",
        reason=word,
        at=max(at, record.at),
        was_green=record.was_green or is_healthy,
        mended_after=calls if is_healthy else record.mended_after,
    )


def now(record: HealthRecord, *, unavailable_because: str = "") -> HealthRecord:
    """The health at this moment: what is down is unavailable, unless it is in quarantine anyway."""
    if not unavailable_because or record.state in QUARANTINED:
        return record
    return msgspec.structs.replace(record, state="unavailable", reason=unavailable_because)


def smoothed(successes: float, trials: float) -> float:
    """The rate of successes, as if there had been one more success and one more failure."""
    return (successes + 1) / (trials + 2)
