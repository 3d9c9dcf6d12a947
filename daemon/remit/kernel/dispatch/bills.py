"""The token bill: whatever is put before a model, counted for the one whose model it is.

Counting is a few additions in memory. What was counted is written from time to time, all at once;
a daemon that is killed loses the last seconds of it, and nothing else.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import anyio
import msgspec
import structlog

from remit.errors import StoreError
from remit.kernel.store.protocol import BillStore
from remit.kernel.store.records import BillBounds, BillDay, BillTurn

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


class Bill(msgspec.Struct):
    """What somebody was shown since the daemon started, and what everything would have cost."""

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


class Bills:
    """Counts for everybody, and keeps it in the store."""

    def __init__(self, store: BillStore, clock: Callable[[], float]) -> None:
        """Begin with nothing counted.

        Args:
            store: where it is kept.
            clock: the time of day.
        """
        self._store = store
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
            await self._store.bill_add(
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
        return await self._store.bill_days(principal, first_day)

    async def turns(self, principal: str, limit: int) -> tuple[BillTurn, ...]:
        """The latest turns of one, newest first."""
        await self.write()
        return await self._store.bill_turns(principal, limit)

    async def sums(self, first_day: int) -> tuple[BillDay, ...]:
        """The bills of everybody, a row a kind."""
        await self.write()
        return await self._store.bill_sums(first_day)

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
