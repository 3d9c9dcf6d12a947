"""What was put before models, in SQLite."""

import sqlite3
from collections.abc import Sequence

import msgspec

from remit.kernel.store.checks import check_text
from remit.kernel.store.database import Rows
from remit.kernel.store.records import BillBounds, BillDay, BillTurn

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


class BillRows(Rows):
    """What was put before models. It outlives an agent; a newcomer of that name begins anew."""

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


def _text(kinds: object) -> str:
    return msgspec.json.encode(kinds, order="sorted").decode()
