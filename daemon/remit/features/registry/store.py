"""Trials in SQLite: the latest, what each voice has seen, and totals.

A row that this version cannot read is left out; the others count.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, get_args

import msgspec

from remit.kernel.store.rows import Rows

Outcome = Literal["success", "failure", "denied", "cancelled", "bad_arguments", "unreachable"]
"""Only successes and failures count in rates: the others are nobody's fault but the caller's, the
operator's or a server's that is away."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
KEPT = 10_000
"""How many trials can be queried; of the others the counts remain."""

VoiceKey = tuple[str, str, str]
"""Implementation, facet ('' for all, '#' and a tag, '@' and a model), root of a tree of agents."""
_ADD = "INSERT OR REPLACE INTO trial (last, body) VALUES (?, ?)"
_TRIM = "DELETE FROM trial WHERE last <= (SELECT max(last) FROM trial) - ?"
_PUT_VOICE = """
INSERT INTO trial_voice (id, facet, root, successes, failures, turn) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id, facet, root) DO UPDATE SET successes = excluded.successes,
    failures = excluded.failures, turn = excluded.turn
"""
_DROP_VOICE = "DELETE FROM trial_voice WHERE id = ? AND facet = ? AND root = ?"
_PUT_TOTAL = "INSERT OR REPLACE INTO trial_total VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LIST = "SELECT last, body FROM trial ORDER BY last DESC"
_VOICES = "SELECT id, facet, root, successes, failures, turn FROM trial_voice ORDER BY turn"
_TOTALS = "SELECT * FROM trial_total ORDER BY id"
_CODE_OUTCOMES: Mapping[str, Outcome] = {
    "": "success",
    **dict.fromkeys(("approval_pending", "denied", "exceeds_parent", "limit_exceeded"), "denied"),
    "cancelled": "cancelled",
    **dict.fromkeys(("invalid_data", "invalid_name", "invalid_pattern"), "bad_arguments"),
    **dict.fromkeys(("invalid_definition", "not_found", "conflict"), "bad_arguments"),
    **dict.fromkeys(("too_large", "unknown_agent", "unknown_event"), "bad_arguments"),
    **dict.fromkeys(("unavailable", "store_unavailable", "fetch_failed"), "unreachable"),
}
"""By the code of an error; any other one is a failure of the tool."""


def outcome_of(code: str) -> Outcome:
    """Whose fault an answer is, by the code of its error; an empty one is a success."""
    return _CODE_OUTCOMES.get(code, "failure")


class MissionLabel(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a bound mission adds to the trials of its calls."""

    id: str = ""
    tags: tuple[str, ...] = ()
    model: str = ""


TrialRow = tuple[str, str, str, str, float | None, float, MissionLabel | None, Outcome | None]
"""Id, caller, root, code, seconds, time, mission, and the outcome where somebody reported it. Rows
are written as they are: a call costs no more than that."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a tool or skill, and how it went."""

    id: str
    outcome: Outcome
    at: float
    latency: float | None = None
    tags: tuple[str, ...] = ()
    model: str = ""
    by: str = ""
    """The principal that used it."""
    root: str = ""
    """The root of its tree of agents, which is one voice; empty when it was gone by then."""
    mission: str = ""
    diagnosis: str = ""
    """The code of its error, or one that was reported."""
    reported: bool = False
    """Somebody said so; otherwise the dispatcher saw it."""
    number: int = 0
    """Its place in the order of trials; 0 until it is taken in."""

    def row(self) -> TrialRow:
        """As it is written when somebody reports it."""
        label = MissionLabel(self.mission, self.tags, self.model)
        return (
            *(self.id, self.by, self.root, self.diagnosis),
            *(self.latency, self.at, label, self.outcome),
        )


class Voice(msgspec.Struct):
    """What one tree of agents has seen of an implementation, under one facet."""

    successes: float = 0.0
    failures: float = 0.0
    turn: int = 0
    """Grows with each use, whatever the clock says."""


class TrialTotal(msgspec.Struct):
    """All trials of an implementation, each counted once, whoever made it."""

    id: str
    success: int = 0
    failure: int = 0
    denied: int = 0
    cancelled: int = 0
    bad_arguments: int = 0
    unreachable: int = 0
    seconds: float = 0.0
    timed: int = 0
    """How many of them were timed."""
    called: int = 0
    """Successes and failures that the dispatcher saw."""
    recent: str = ""
    """The latest of them, oldest first: `s` or `f` each."""


class TrialChanges(msgspec.Struct, frozen=True):
    """What is written at once."""

    last: int = 0
    """The number of the last one of `trials`; those before it have the numbers before it."""
    trials: Sequence[TrialRow] = ()
    voices: Sequence[tuple[VoiceKey, Voice]] = ()
    dropped: Sequence[VoiceKey] = ()
    totals: Sequence[TrialTotal] = ()
    dropped_totals: Sequence[str] = ()


class TrialRows(Rows):
    """Trials of tools and skills, and their counts."""

    async def trial_write(self, changes: TrialChanges) -> None:
        """Add trials, put and drop counts, and forget trials beyond `KEPT`; all or nothing."""
        trials = changes.trials[-KEPT:]
        body = _ENCODE(trials)
        voices = [(*key, one.successes, one.failures, one.turn) for key, one in changes.voices]
        totals = [msgspec.structs.astuple(one) for one in changes.totals]

        def write(connection: sqlite3.Connection) -> None:
            if trials:
                connection.execute(_ADD, (changes.last, body))
                connection.execute(_TRIM, (KEPT,))
            connection.executemany(_DROP_VOICE, changes.dropped)
            connection.executemany(_PUT_VOICE, voices)
            gone = [(name,) for name in changes.dropped_totals]
            connection.executemany("DELETE FROM trial_total WHERE id = ?", gone)
            connection.executemany(_PUT_TOTAL, totals)

        await self.database.write(write)

    async def trial_list(
        self, accept: Callable[[Trial], bool], limit: int, before: int | None = None
    ) -> tuple[Trial, ...]:
        """The latest trials that are accepted, newest first.

        Args:
            accept: called in the thread of the database.
            limit: how many at the most.
            before: only those with a lower number.
        """

        def read(connection: sqlite3.Connection) -> tuple[Trial, ...]:
            found = _latest(connection.execute(_LIST), before)
            return tuple(islice(filter(accept, found), limit))

        return await self.database.read(read)

    async def trial_newest(self) -> int:
        """The highest number that a trial was ever given."""
        query = "SELECT coalesce(max(last), 0) FROM trial"
        return await self.database.read(
            lambda connection: int(connection.execute(query).fetchone()[0])
        )

    async def trial_voices(self) -> tuple[tuple[VoiceKey, Voice], ...]:
        """What every voice has seen, the one that has been silent for longest first."""
        return await self.database.read(
            lambda connection: tuple(
                ((name, facet, root), Voice(successes, failures, turn))
                for name, facet, root, successes, failures, turn in connection.execute(_VOICES)
            )
        )

    async def trial_totals(self) -> tuple[TrialTotal, ...]:
        """All totals, by id."""
        return await self.database.read(
            lambda connection: tuple(TrialTotal(*row) for row in connection.execute(_TOTALS))
        )


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(list[TrialRow]).decode


def _latest(chunks: Iterable[tuple[int, bytes]], before: int | None) -> Iterator[Trial]:
    """The trials that count as kept, newest first, each once."""
    newest: int | None = None
    for last, body in chunks:
        newest = last if newest is None else newest
        try:
            rows = _DECODE(body)
        except msgspec.MsgspecError:
            continue
        for back, row in enumerate(reversed(rows)):
            number = last - back
            if number <= newest - KEPT:
                return
            # Rows whose write was cancelled stand in a second chunk as well.
            if before is None or number < before:
                before = number
                yield _trial_of(row, number)


def _trial_of(row: TrialRow, number: int) -> Trial:
    name, by, root, code, seconds, at, label, outcome = row
    mission = label or MissionLabel()
    return Trial(
        id=name,
        outcome=outcome or outcome_of(code),
        at=at,
        latency=seconds,
        tags=mission.tags,
        model=mission.model,
        by=by,
        root=root,
        mission=mission.id,
        diagnosis=code,
        reported=outcome is not None,
        number=number,
    )
