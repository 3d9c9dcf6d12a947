"""What was put before models, in memory."""

from collections.abc import Sequence

import msgspec

from remit.kernel.store.checks import check_text
from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.records import BillBounds, BillDay, BillTurn


class MemoryBills(MemoryTables):
    """See `BillStore` for what each method promises."""

    async def bill_add(
        self, days: Sequence[BillDay], turns: Sequence[BillTurn], bounds: BillBounds
    ) -> None:
        """Add to what is kept, and forget what is old or too much."""
        for principal in {one.principal for one in days} | {one.principal for one in turns}:
            check_text(principal, "$.principal")
        for day in days:
            key = (day.principal, day.day, day.kind)
            known = self._bill_days.get(key)
            self._bill_days[key] = day if known is None else _added(known, day)
        for turn in turns:
            began = self._bill_turns.get((turn.principal, turn.number))
            put = turn if began is None else msgspec.structs.replace(turn, at=began.at)
            self._bill_turns[turn.principal, turn.number] = put
        self._forget_bills(bounds, {turn.principal for turn in turns})

    def _forget_bills(self, bounds: BillBounds, principals: set[str]) -> None:
        turns = sorted(self._bill_turns.values(), key=lambda one: (one.number, one.principal))
        for principal in principals:
            of_one = [turn for turn in turns if turn.principal == principal]
            for turn in of_one[: -bounds.turns_of_one or None]:
                turns.remove(turn)
        turns = [turn for turn in turns if turn.number >= bounds.first_turn][-bounds.rows :]
        self._bill_turns = {(turn.principal, turn.number): turn for turn in turns}
        days = [day for day in self._bill_days.values() if day.day >= bounds.first_day]
        days.sort(key=lambda one: (one.day, one.principal, one.kind))
        kept = days[-bounds.rows :]
        self._bill_days = {(day.principal, day.day, day.kind): day for day in kept}

    async def bill_sums(self, first_day: int) -> tuple[BillDay, ...]:
        """Everybody's days added up."""
        sums: dict[tuple[str, str], BillDay] = {}
        for day in sorted(self._bill_days.values(), key=lambda one: one.day):
            if day.day >= first_day:
                key = (day.principal, day.kind)
                sums[key] = _added(sums[key], day) if key in sums else day
        return tuple(sums[key] for key in sorted(sums))

    async def bill_days(self, principal: str, first_day: int) -> tuple[BillDay, ...]:
        """The days of one."""
        check_text(principal, "$.principal")
        found = (day for day in self._bill_days.values() if day.principal == principal)
        kept = [day for day in found if day.day >= first_day]
        return tuple(sorted(kept, key=lambda one: (one.day, one.kind)))

    async def bill_turns(self, principal: str, limit: int) -> tuple[BillTurn, ...]:
        """The latest turns of one, newest first."""
        check_text(principal, "$.principal")
        found = [turn for turn in self._bill_turns.values() if turn.principal == principal]
        return tuple(sorted(found, key=lambda one: -one.number)[:limit])


def _added(one: BillDay, other: BillDay) -> BillDay:
    return msgspec.structs.replace(
        one,
        count=one.count + other.count,
        sent=one.sent + other.sent,
        full_dump=one.full_dump + other.full_dump,
    )
