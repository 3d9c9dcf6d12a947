"""The audit log in SQLite."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import anyio
from anyio import to_thread

from remit.errors import InvalidDataError, StoreError
from remit.kernel.audit.chain import (
    CHUNK_ROWS,
    COLUMNS,
    SELECT,
    AuditEntry,
    AuditHead,
    AuditPage,
    AuditRow,
    AuditTable,
    AuditVerdict,
    AuditWhere,
    ChainWalk,
    Place,
    cannot_rotate,
    chain_hash,
    check_entry,
    check_keep,
    entry_size,
    to_row,
    walk_chunk,
)
from remit.kernel.audit.head import HeadTracker
from remit.kernel.store.rows import (
    PAGE_BYTES,
    PAGE_LIMIT,
    Rows,
    after_prefix,
    check_limit,
    check_text,
    check_time,
)

if TYPE_CHECKING:
    from remit.kernel.store.database import Database

Connection = sqlite3.Connection

_TEXTS = ("principal", "event", "reason", "outcome", "decision")
_TIMES = ("since", "until")
_LAST_ROW = 2**63 - 1
WINDOW_ROWS = 20_000
_INSERT = f"INSERT INTO audit ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - the columns are ours
_WINDOW = f"{SELECT} WHERE seq <= :top AND seq > :floor AND"
_MOVE_ANCHOR = """
UPDATE audit_anchor SET seq = :seq, hash = (SELECT hash FROM audit WHERE seq = :seq)
"""


class AuditRows(Rows):
    """The log of what mattered. It only grows, and each row vouches for the one before it."""

    def __init__(self, database: "Database", *, head: HeadTracker | None = None) -> None:
        """Look at the audit of a database.

        Args:
            database: where the rows are.
            head: keeps the head of the audit outside of it; given once, before it is opened.
        """
        super().__init__(database)
        self._memory = database.memory(_Memory)
        if head is not None:
            self._memory.head = head
            database.observers.append(_HeadObserver(head, self._find_newest))

    async def audit_append(self, entry: AuditEntry, *, is_essential: bool = False) -> AuditRow:
        """Write an entry behind all others; an essential one also when the disk is full.

        Raises:
            InvalidDataError: the details are not a JSON object, or another field has no JSON.
            TooLargeError: the entry is beyond what the log takes.
        """
        fields = check_entry(entry)
        return await self.database.write(
            lambda connection: self._append(connection, entry, fields),
            is_single=True,
            is_essential=is_essential,
        )

    async def audit_query(
        self, *, limit: int = PAGE_LIMIT, before: int | None = None, **where: Unpack[AuditWhere]
    ) -> AuditPage:
        """Rows that are like `where`, newest first, from in front of row `before`."""
        check_limit(limit)
        _check_before(before)
        query = _Query(limit, _check_where(where))
        (first, _), newest = await self.database.read(_span)
        top = newest if before is None else min(newest, before - 1)
        # In windows, because there is no index: nobody shall wait long behind a rare find.
        while top > first and not query.is_full:
            floor = max(top - WINDOW_ROWS, first)
            await self.database.read(partial(query.take, top=top, floor=floor))
            top = floor
        return query.page()

    async def audit_verify(self, *, expected_head: str | None = None) -> AuditVerdict:
        """Prove the chain from its anchor to its end, or name the first broken row.

        A log that lost its newest rows while no daemon ran is whole in itself. `expected_head`, a
        head that was noted outside, must be somewhere in the chain, and so proves all before it.
        """
        async with self._memory.walking:
            anchor, end = await self._ends()
            walk = ChainWalk(*anchor, expected_head=expected_head)
            while walk.seq < end:
                start = walk.seq
                holds = await self.database.read(partial(walk_chunk, walk=walk, end=end))
                if not holds or walk.seq == start:
                    break
            return walk.verdict(end)

    async def audit_head(self) -> AuditHead | None:
        """What vouches for the end of the log from outside, if anything does."""
        head = self._memory.head
        if head is None:
            return None
        # In the writing thread: between two commits the file and the table must agree.
        return await self.database.write(lambda _: head.report(), is_essential=True)

    async def audit_accept(self, base: Place | None) -> None:
        """Take the end of the log as it is; with `base` archives begin behind that row."""
        head = self._memory.head
        if head is not None:
            await self.database.write(lambda _: head.accept(base), is_essential=True)

    async def audit_rotate(self, keep: int, archive: Callable[[Sequence[AuditRow]], None]) -> int:
        """Hand all but the newest `keep` rows to `archive`, then forget them; tells how many.

        `archive` is called in a thread, with one part after another, oldest first. If it raises,
        nothing is deleted. After a crash it may be handed the same rows again.

        Raises:
            ConflictError: a row that should go is broken; rotation would hide that.
        """
        check_keep(keep)
        async with self._memory.walking:
            anchor, newest = await self._ends()
            first, end = anchor[0], newest - keep
            walk = ChainWalk(*anchor)
            while walk.seq < end:
                rows = await self.database.read(partial(_chunk, after=walk.seq, end=end))
                if not rows or not walk.walk(rows):
                    raise cannot_rotate(walk.verdict(end))
                await to_thread.run_sync(archive, rows)
            # Step by step, each whole in itself: nobody waits long behind a large deletion.
            for step in range(first, end, CHUNK_ROWS):
                await self.database.write(partial(_forget, seq=min(step + CHUNK_ROWS, end)))
            return max(end - first, 0)

    async def _ends(self) -> tuple[tuple[int, str], int]:
        """The anchor, and the number of the newest row."""
        # Asked from the writer, who remembers the newest row also when it is gone from the file.
        newest, _ = await self.database.write(self._find_newest, is_essential=True)
        return await self.database.read(_anchor), newest

    def _append(self, connection: Connection, entry: AuditEntry, fields: bytes) -> AuditRow:
        seq, previous = self._find_newest(connection)
        row = AuditRow(seq + 1, entry, previous, chain_hash(fields, seq + 1, previous))
        connection.execute(_INSERT, _to_values(row))
        self._memory.newest = (self.database.undone, row.seq, row.hash)
        return row

    def _find_newest(self, connection: Connection) -> tuple[int, str]:
        if self._memory.newest is None or self._memory.newest[0] != self.database.undone:
            table = AuditTable(connection)
            if self._memory.head is not None:
                self._memory.head.confirm(table)
            self._memory.newest = (self.database.undone, *table.newest())
        return self._memory.newest[1:]


class _Memory:
    """What is remembered of the audit of a database, whoever looks at it."""

    def __init__(self) -> None:
        self.newest: tuple[int, int, str] | None = None
        """The newest row, and what the writer had undone when it was written; only the writing
        thread uses it. It spares each append a query, and knows of a tail that was cut off."""
        self.walking = anyio.Lock()
        """Rotation takes rows away under the feet of a walk."""
        self.head: HeadTracker | None = None


class _HeadObserver:
    """Keeps the head in step with the table."""

    def __init__(
        self, head: HeadTracker, find_newest: Callable[[Connection], tuple[int, str]]
    ) -> None:
        self._head = head
        self._find_newest = find_newest

    def opened(self, connection: Connection, applied: Sequence[str]) -> None:
        """Compare the head with the table as it was found."""
        is_first = any(step.endswith("_audit_head") for step in applied)
        self._head.begin(AuditTable(connection), is_first=is_first)

    def committed(self, connection: Connection) -> None:
        """Note the newest row; when it cannot be read the head stays behind until it can."""
        with suppress(sqlite3.Error, StoreError):
            self._head.advance(self._find_newest(connection))

    def closed(self) -> None:
        """Say that no row comes any more."""
        self._head.end()


class _Query:
    """A page that is filled window by window, newest first."""

    def __init__(self, limit: int, given: dict[str, Any]) -> None:
        conditions, self._parameters = _to_sql(given)
        self._sql = f"{_WINDOW} {conditions} ORDER BY seq DESC LIMIT :limit"
        self._limit = limit
        self._left = PAGE_BYTES
        self._items: list[AuditRow] = []
        self.is_full = False

    def take(self, connection: Connection, *, top: int, floor: int) -> None:
        """Add what there is between `floor` and `top`."""
        where = self._parameters | {"top": top, "floor": floor, "limit": self._limit + 1}
        for row in map(to_row, connection.execute(self._sql, where)):
            self._left -= entry_size(row)
            if self._items and (len(self._items) == self._limit or self._left < 0):
                self.is_full = True
                return
            self._items.append(row)

    def page(self) -> AuditPage:
        """What was found; there is a next page when this one ran over."""
        return AuditPage(tuple(self._items), self._items[-1].seq if self.is_full else None)


def _check_where(where: AuditWhere) -> dict[str, Any]:
    """The conditions that were really given.

    Raises:
        InvalidDataError: a condition could not be asked of a database.
        TypeError: there is no such condition; ignoring it would show too much.
    """
    given = {name: value for name, value in where.items() if value is not None}
    for name, value in given.items():
        if name in _TEXTS:
            check_text(str(value), f"$.{name}")
        elif name in _TIMES:
            check_time(float(str(value)), f"$.{name}")
        else:
            raise TypeError(f"audit_query() has no condition {name!r}")
    return given


def _check_before(before: int | None) -> None:
    """Refuse a cursor that no page can have given."""
    if before is not None and not 0 <= before <= _LAST_ROW:
        raise InvalidDataError(
            f"{before} is not a place in the audit log",
            hint="go on with the 'next' of the page before",
            details={"path": "$.before"},
        )


def _to_sql(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same as a condition in SQL, with its parameters."""
    exact = {name: given[name] for name in _TEXTS if name in given}
    parameters: dict[str, Any] = dict(exact)
    conditions = ["TRUE"]
    if prefix := _prefix(exact):
        conditions.append("event >= :prefix")
        parameters["prefix"] = prefix
        if (end := after_prefix(prefix)) is not None:
            conditions.append("event < :end")
            parameters["end"] = end
    conditions += [f"{name} = :{name}" for name in exact]
    for name, condition in (("since", "at >= :since"), ("until", "at <= :until")):
        if name in given:
            conditions.append(condition)
            parameters[name] = given[name]
    return " AND ".join(conditions), parameters


def _prefix(exact: dict[str, Any]) -> str:
    """Take a pattern that ends in `*` out of the exact conditions."""
    if not exact.get("event", "").endswith("*"):
        return ""
    return str(exact.pop("event"))[:-1]


def _span(connection: Connection) -> tuple[Place, int]:
    """The anchor, and the number of the newest row in the file."""
    table = AuditTable(connection)
    return table.anchor(), table.newest()[0]


def _anchor(connection: Connection) -> Place:
    return AuditTable(connection).anchor()


def _chunk(connection: Connection, *, after: int, end: int) -> list[AuditRow]:
    return AuditTable(connection).chunk(after=after, end=end)


def _forget(connection: Connection, *, seq: int) -> None:
    connection.execute(_MOVE_ANCHOR, {"seq": seq})
    connection.execute("DELETE FROM audit WHERE seq <= ?", (seq,))


def _to_values(row: AuditRow) -> tuple[Any, ...]:
    entry = row.entry
    return (
        row.seq,
        entry.at,
        entry.principal,
        entry.event,
        entry.outcome,
        entry.reason,
        entry.decision,
        entry.revision,
        entry.origin,
        entry.details,
        row.previous,
        row.hash,
    )
