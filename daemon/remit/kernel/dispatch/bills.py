"""The token bill: whatever is put before a model, counted for the one whose model it is.

Counting is a few additions in memory. What was counted is written from time to time, all at once;
a daemon that is killed loses the last seconds of it, and nothing else.
"""

import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import anyio
import msgspec
import structlog

from remit.errors import StoreError
from remit.kernel.store.rows import Rows, check_text

log = structlog.get_logger()

Kind = Literal["lists", "searches", "details", "cards", "skills", "prompts"]
KINDS: tuple[Kind, ...] = ("lists", "searches", "details", "cards", "skills", "prompts")
"""Lists of tools; searches; details of one thing; cards; files of skills; system prompts."""

TURN = "turn"
"""The kind of the rows that count turns, and nothing that was sent."""
DAYS = 30
"""How long bills are kept."""
TURNS = 200
"""How many turns of one are kept."""
_OPENING: tuple[Kind, ...] = ("searches", "cards")
"""A turn has one of each: a further one begins the next turn."""
_ROWS = 200_000
_CALLERS = 10_000
_WRITE_SECONDS = 5.0
_DAY = 86_400
_MICRO = 1_000_000
_ADD = """
INSERT INTO bill_day (principal, day, kind, count, sent, full_dump) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (principal, day, kind) DO UPDATE SET count = count + excluded.count,
    sent = sent + excluded.sent, full_dump = full_dump + excluded.full_dump
"""
_PUT = """
INSERT INTO bill_turn (principal, number, at, sent, full_dump, kinds) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (principal, number) DO UPDATE SET sent = excluded.sent,
    full_dump = excluded.full_dump, kinds = excluded.kinds
"""
_OLDER_TURNS = """
DELETE FROM bill_turn WHERE principal = ?1 AND number <= (
    SELECT number FROM bill_turn WHERE principal = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
"""
_EXCESS_DAYS = """
DELETE FROM bill_day WHERE (principal, day, kind) IN (
    SELECT principal, day, kind FROM bill_day ORDER BY day, principal, kind LIMIT ?)
"""
_EXCESS_TURNS = """
DELETE FROM bill_turn WHERE (principal, number) IN (
    SELECT principal, number FROM bill_turn ORDER BY number, principal LIMIT ?)
"""
_SUMS = """
SELECT principal, min(day), kind, sum(count), sum(sent), sum(full_dump) FROM bill_day
WHERE day >= ? GROUP BY principal, kind ORDER BY principal, kind
"""
_DAYS = """
SELECT principal, day, kind, count, sent, full_dump FROM bill_day
WHERE principal = ? AND day >= ? ORDER BY day, kind
"""
_TURNS = """
SELECT number, at, sent, full_dump, kinds FROM bill_turn
WHERE principal = ? ORDER BY number DESC LIMIT ?
"""


class Bill(msgspec.Struct):
    """Tokens that a principal was shown since the start, and what everything would have cost."""

    turns: int = 0
    sent: int = 0
    full_dump: int = 0
    last_sent: int = 0
    last_full_dump: int = 0


class _Turn(msgspec.Struct):
    """The present turn of somebody."""

    number: int
    at: float
    sent: int = 0
    full_dump: int = 0
    kinds: dict[str, int] = {}


class BillDay(msgspec.Struct, frozen=True):
    """The tokens of one principal, day and kind of text."""

    principal: str
    day: int
    """Since 1970, in UTC."""
    kind: str
    count: int
    sent: int
    full_dump: int
    """What everything would have cost in its place."""


class BillTurn(msgspec.Struct, frozen=True):
    """The tokens of one turn of a principal."""

    principal: str
    number: int
    """Grows with time: microseconds since 1970, or one more than the turn before."""
    at: float
    sent: int
    full_dump: int
    kinds: dict[str, int]


class BillBounds(msgspec.Struct, frozen=True):
    """Bounds on the rows of bills; the oldest goes first."""

    first_day: int
    first_turn: int
    turns_of_one: int
    rows: int
    """Days, and turns, of everybody together."""


class BillRows(Rows):
    """The rows of bills. They outlive an agent; a newcomer of its name begins anew."""

    async def bill_add(
        self, days: Sequence[BillDay], turns: Sequence[BillTurn], bounds: BillBounds
    ) -> None:
        """Add to the days that are kept, put the turns, and forget what is out of bounds.

        Raises:
            InvalidDataError: a principal cannot be one.
        """
        for principal in {one.principal for one in days} | {one.principal for one in turns}:
            check_text(principal, "$.principal")
        rows = [msgspec.structs.astuple(day) for day in days]
        put = [(*msgspec.structs.astuple(turn)[:-1], _text(turn.kinds)) for turn in turns]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(_ADD, rows)
            connection.executemany(_PUT, put)
            connection.execute("DELETE FROM bill_day WHERE day < ?", (bounds.first_day,))
            connection.execute("DELETE FROM bill_turn WHERE number < ?", (bounds.first_turn,))
            for principal in {turn.principal for turn in turns}:
                connection.execute(_OLDER_TURNS, (principal, bounds.turns_of_one))
            for table, excess in (("bill_day", _EXCESS_DAYS), ("bill_turn", _EXCESS_TURNS)):
                query = f"SELECT count(*) FROM {table}"  # noqa: S608 - one of two names
                (stored,) = connection.execute(query).fetchone()
                if stored > bounds.rows:
                    connection.execute(excess, (stored - bounds.rows,))

        await self.database.write(write)

    async def bill_sums(self, first_day: int) -> tuple[BillDay, ...]:
        """The days of everybody from a day on, added up by principal and kind; sorted."""
        return await self.database.read(
            lambda connection: tuple(
                BillDay(*row) for row in connection.execute(_SUMS, (first_day,))
            )
        )

    async def bill_days(self, principal: str, first_day: int) -> tuple[BillDay, ...]:
        """The days of one from a day on, by day and kind."""
        check_text(principal, "$.principal")
        asked = (principal, first_day)
        return await self.database.read(
            lambda connection: tuple(BillDay(*row) for row in connection.execute(_DAYS, asked))
        )

    async def bill_turns(self, principal: str, limit: int) -> tuple[BillTurn, ...]:
        """The latest turns of one, newest first."""
        check_text(principal, "$.principal")
        asked = (principal, limit)
        return await self.database.read(
            lambda connection: tuple(
                BillTurn(principal, number, at, sent, full_dump, msgspec.json.decode(kinds))
                for number, at, sent, full_dump, kinds in connection.execute(_TURNS, asked)
            )
        )


class Bills:
    """Counts for everybody, and keeps it in the store."""

    def __init__(self, rows: BillRows, clock: Callable[[], float]) -> None:
        """Begin with nothing counted.

        Args:
            rows: where it is kept.
            clock: the time of day.
        """
        self._rows = rows
        self._clock = clock
        self._days: dict[tuple[str, int, str], list[int]] = {}
        self._changed: dict[tuple[str, int], _Turn] = {}
        self._present: dict[str, _Turn] = {}
        self.of: dict[str, Bill] = {}
        """By principal, since the start; of too many the oldest goes first."""
        self.total = Bill()
        self.sent: dict[str, int] = dict.fromkeys(KINDS, 0)
        """By kind, since the start."""

    def bill(self, principal: str) -> Bill:
        """What somebody was shown since the start."""
        return self.of.get(principal) or Bill()

    def charge(self, principal: str, kind: Kind, sent: int, full_dump: int = 0) -> None:
        """Count something that is put before the model of somebody.

        Args:
            principal: whose model it is.
            kind: what it is.
            sent: its tokens.
            full_dump: the tokens of everything, where this stands in the place of it.
        """
        turn = self._present.get(principal)
        begins = turn is None or (kind in _OPENING and kind in turn.kinds)
        if turn is None or begins:
            turn = self._begin(principal, turn)
        turn.sent += sent
        turn.full_dump += full_dump
        turn.kinds[kind] = turn.kinds.get(kind, 0) + sent
        today = int(self._clock()) // _DAY
        self._add((principal, today, kind), 1, sent, full_dump)
        if begins:
            self._add((principal, today, TURN), 1, 0, 0)
        self._note(principal, turn)
        self.sent[kind] += sent
        for bill in (self._bill_of(principal), self.total):
            bill.turns += begins
            bill.sent += sent
            bill.full_dump += full_dump
            bill.last_sent, bill.last_full_dump = turn.sent, turn.full_dump

    def _note(self, principal: str, turn: _Turn) -> None:
        key = (principal, turn.number)
        if key not in self._changed and len(self._changed) >= _CALLERS:
            self._changed.pop(next(iter(self._changed)))
        self._changed[key] = turn

    def _add(self, key: tuple[str, int, str], count: int, sent: int, full_dump: int) -> None:
        day = self._days.get(key)
        if day is None:
            day = self._days[key] = [0, 0, 0]
        day[0] += count
        day[1] += sent
        day[2] += full_dump

    def _begin(self, principal: str, before: _Turn | None) -> _Turn:
        now = self._clock()
        number = max(int(now * _MICRO), 0 if before is None else before.number + 1)
        self._present.pop(principal, None)
        if len(self._present) >= _CALLERS:
            self._present.pop(next(iter(self._present)))
        self._present[principal] = _Turn(number, now, kinds={})
        return self._present[principal]

    def _bill_of(self, principal: str) -> Bill:
        bill = self.of.get(principal)
        if bill is None:
            if len(self.of) >= _CALLERS:
                self.of.pop(next(iter(self.of)))
            bill = self.of[principal] = Bill()
        return bill

    def ended(self, principal: str) -> None:
        """Begin anew with that name; what was counted stays on the bill of the day."""
        self._present.pop(principal, None)
        self.of.pop(principal, None)

    def first_day(self, since: float | None = None) -> int:
        """The day that a question begins with: the one of a time, and none that is forgotten."""
        oldest = int(self._clock()) // _DAY - DAYS + 1
        return oldest if since is None else max(oldest, int(since) // _DAY)

    async def write(self) -> None:
        """Write down what was counted since the last time; what cannot be written waits."""
        if not self._days:
            return
        days, self._days = self._days, {}
        turns, self._changed = self._changed, {}
        first = self.first_day()
        bounds = BillBounds(first, first * _DAY * _MICRO, TURNS, _ROWS)
        rows = [BillDay(*key, *amounts) for key, amounts in days.items()]
        try:
            await self._rows.bill_add(
                rows, [_kept(name, turn) for (name, _), turn in turns.items()], bounds
            )
        except StoreError:
            self._give_back(rows, turns)
            raise

    def _give_back(self, days: Sequence[BillDay], turns: dict[tuple[str, int], _Turn]) -> None:
        for day in days:
            key = (day.principal, day.day, day.kind)
            if len(self._days) < _CALLERS or key in self._days:
                self._add(key, day.count, day.sent, day.full_dump)
        kept = {**turns, **self._changed}
        self._changed = dict(list(kept.items())[-_CALLERS:])

    async def days(self, principal: str, first_day: int) -> tuple[BillDay, ...]:
        """The bill of one, a row a day and kind."""
        await self.write()
        return await self._rows.bill_days(principal, first_day)

    async def turns(self, principal: str, limit: int) -> tuple[BillTurn, ...]:
        """The latest turns of one, newest first."""
        await self.write()
        return await self._rows.bill_turns(principal, limit)

    async def sums(self, first_day: int) -> tuple[BillDay, ...]:
        """The bills of everybody, a row a kind."""
        await self.write()
        return await self._rows.bill_sums(first_day)

    @asynccontextmanager
    async def keeping(self) -> AsyncGenerator[None]:
        """Write from time to time, for as long as this is open, and once more then."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep)
            yield
            tasks.cancel_scope.cancel()

    async def _keep(self) -> None:
        try:
            while True:
                await anyio.sleep(_WRITE_SECONDS)
                try:
                    await self.write()
                except StoreError as error:
                    log.warning("bills_not_written", problem=str(error))
        finally:
            with anyio.move_on_after(_WRITE_SECONDS, shield=True):
                await self.write()


def _kept(principal: str, turn: _Turn) -> BillTurn:
    return BillTurn(principal, turn.number, turn.at, turn.sent, turn.full_dump, dict(turn.kinds))


def _text(kinds: object) -> str:
    return msgspec.json.encode(kinds, order="sorted").decode()
