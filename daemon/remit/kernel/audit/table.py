"""The table of the audit as SQL: looked at by the store, and by proofs beside a daemon."""

import sqlite3
from collections.abc import Iterator
from typing import Any

from remit.errors import StoreError
from remit.kernel.store.audit_chain import ChainWalk, entry_size
from remit.kernel.store.audit_head import Place
from remit.kernel.store.pages import cut
from remit.kernel.store.records import AuditEntry, AuditRow

Connection = sqlite3.Connection

CHUNK_ROWS = 1000
CHUNK_BYTES = 4 * 1024 * 1024
COLUMNS = """
seq, at, principal, event, outcome, reason, decision, revision, origin, details, previous, hash
"""
SELECT = f"SELECT {COLUMNS} FROM audit"  # noqa: S608 - the columns are ours
_CHUNK = f"{SELECT} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
_ANCHOR = "SELECT seq, hash FROM audit_anchor"
_LAST = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
_HASH = "SELECT hash FROM audit WHERE seq = ?"
_SPAN = "SELECT max(at) - min(at) FROM audit WHERE seq > ?"


class AuditTable:
    """The table behind a connection, at this moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def anchor(self) -> Place:
        """The last row that was rotated away."""
        found = self._connection.execute(_ANCHOR).fetchone()
        if found is None:
            raise StoreError("the anchor of the audit is gone", hint="restore a backup of the home")
        return int(found[0]), str(found[1])

    def newest(self) -> Place:
        """The newest row, or the anchor."""
        found = self._connection.execute(_LAST).fetchone()
        return self.anchor() if found is None else (int(found[0]), str(found[1]))

    def hash_of(self, seq: int) -> str | None:
        """The hash of a row, if it is there."""
        found = self._connection.execute(_HASH, (seq,)).fetchone()
        return None if found is None else str(found[0])

    def seconds_behind(self, seq: int) -> float:
        """The time between the first and the last row behind row `seq`."""
        (found,) = self._connection.execute(_SPAN, (seq,)).fetchone()
        return float(found or 0.0)

    def chunk(self, *, after: int, end: int) -> list[AuditRow]:
        """The next rows; damaged text comes along, so that a walk can name its row."""
        connection = self._connection
        connection.text_factory = lambda data: data.decode(errors="surrogateescape")
        try:
            found = map(to_row, connection.execute(_CHUNK, (after, end, CHUNK_ROWS)))
            rows, _ = cut(found, CHUNK_ROWS, CHUNK_BYTES, entry_size)
            return rows
        finally:
            connection.text_factory = str

    def chunks(self, *, after: int, end: int) -> Iterator[list[AuditRow]]:
        """All rows, a chunk at a time."""
        while after < end and (rows := self.chunk(after=after, end=end)):
            yield rows
            after = rows[-1].seq


def walk_chunk(connection: Connection, *, walk: ChainWalk, end: int) -> bool:
    """Go on with a walk; tells whether all rows of the chunk hold."""
    return walk.walk(AuditTable(connection).chunk(after=walk.seq, end=end))


def to_row(values: tuple[Any, ...]) -> AuditRow:
    """A row as it is kept, as a value."""
    return AuditRow(values[0], AuditEntry(*values[1:10]), values[10], values[11])
