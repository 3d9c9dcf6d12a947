"""The chain of the audit log: how a row vouches for the one before it, and how that is proved.

A row's hash is the SHA-256, in hex, of the hash of the row before it (64 hex digits) followed by
the row's own JSON: the fields of the entry and `seq`, keys sorted, no spaces, UTF-8, and `details`
as the text that was sent. So nobody can change, take out, put in or swap rows without making all
later hashes anew, and nobody can do that unseen while somebody remembers a later hash.

The table of the rows is read here too: by the store, and by proofs beside a daemon.
"""

import math
import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, TypedDict

import msgspec

from remit.errors import ConflictError, InvalidDataError, StoreError, TooLargeError
from remit.kernel.store.rows import cut

Connection = sqlite3.Connection
Place = tuple[int, str]
"""The number of a row and its hash."""

GENESIS = "0" * 64
MAX_ENTRY_BYTES = 256 * 1024
_MAX_INTEGER = 2**63 - 1
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


class AuditEntry(msgspec.Struct, frozen=True):
    """Something that mattered, as it is told to the log; `details` is a JSON object."""

    at: float
    principal: str
    event: str
    outcome: str
    reason: str
    decision: str
    revision: int
    origin: str = ""
    details: bytes = b"{}"


class AuditRow(msgspec.Struct, frozen=True):
    """An entry in its place in the chain: `hash` covers the entry, `seq` and `previous`."""

    seq: int
    entry: AuditEntry
    previous: str
    hash: str


class AuditWhere(TypedDict, total=False):
    """A filter for rows of the log. None matches every row, times are inclusive."""

    principal: str | None
    event: str | None  # one name, or the start of many and a '*'
    reason: str | None
    outcome: str | None
    decision: str | None
    since: float | None
    until: float | None


class AuditPage(msgspec.Struct, frozen=True):
    """Some rows, newest first; `next` is the cursor to go on with, or None at the end."""

    items: tuple[AuditRow, ...]
    next: int | None = None


class AuditVerdict(msgspec.Struct, frozen=True):
    """The result of proving the chain.

    `rows` were proved before the end or the first broken row, which is `first_bad`; `problem` says
    what is wrong with it. `head` is the hash of the newest proved row: note it elsewhere, and a
    log that was cut off later can be told.
    """

    ok: bool
    rows: int
    first_bad: int | None
    problem: str
    head: str
    anchor: tuple[int, str] = (0, "")
    """The row, and its hash, behind which the log begins: archives must reach it."""


class AuditHead(msgspec.Struct, frozen=True):
    """The record of the last row that is kept outside of the log.

    The log had a row `seq` with `hash`. Archives begin behind row `base`, with its hash. A head is
    kept since row `since`: nobody vouches for what was cut off before. `problem` says what does not
    agree with all that.
    """

    seq: int
    hash: str
    base: tuple[int, str]
    problem: str = ""
    since: int = 0


class _Fields(msgspec.Struct, gc=False):
    """What is hashed, without `seq`, which comes last. The order is on the disks: keep it."""

    at: float
    decision: str
    details: str
    event: str
    origin: str
    outcome: str
    principal: str
    reason: str
    revision: int


_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def check_entry(entry: AuditEntry) -> bytes:
    """The JSON of an entry that may be written, for `chain_hash`.

    Raises:
        InvalidDataError: a field could not be hashed or kept.
        TooLargeError: the entry is beyond what the log takes.
    """
    try:
        if entry.details != b"{}":
            _decode_object(entry.details)
        fields = fields_json(entry)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidDataError(
            f"this cannot be written to the audit log: {error}",
            hint="send Unicode text, and a JSON object as details",
            details={"path": "$"},
        ) from error
    if not math.isfinite(entry.at) or abs(entry.revision) > _MAX_INTEGER:
        raise InvalidDataError(
            "the time or the revision of an audit entry is out of range", details={"path": "$"}
        )
    if len(fields) > MAX_ENTRY_BYTES:
        raise TooLargeError(
            f"the audit entry has {len(fields):,} bytes, the log takes {MAX_ENTRY_BYTES:,}",
            hint="write down a digest of large things",
            details={"limit": MAX_ENTRY_BYTES, "size": len(fields)},
        )
    return fields


def fields_json(entry: AuditEntry) -> bytes:
    """The sorted JSON of an entry, which does not know its place yet."""
    return _encode(
        _Fields(
            # What is no float, or -0.0, or True would come back from a disk as another text.
            entry.at + 0.0,
            entry.decision,
            entry.details.decode(),
            entry.event,
            entry.origin,
            entry.outcome,
            entry.principal,
            entry.reason,
            entry.revision + 0,
        )
    )


def chain_hash(fields: bytes, seq: int, previous: str) -> str:
    """The hash of an entry as row `seq` behind the row whose hash is `previous`."""
    return sha256(b'%b%b,"seq":%d}' % (previous.encode(), fields[:-1], seq)).hexdigest()


def entry_size(row: AuditRow) -> int:
    """About how many bytes a row takes."""
    entry = row.entry
    return len(entry.details) + len(entry.reason) + len(entry.origin) + len(entry.event)


class ChainWalk:
    """Proves rows one after the other, from an anchor on; stops at the first broken one."""

    def __init__(self, seq: int, head: str, *, expected_head: str | None = None) -> None:
        """Start behind row `seq`, whose hash is `head`; `expected_head` must come by."""
        self.seq = seq
        self._start = (seq, head)
        self._head = head
        self._rows = 0
        self._problem = ""
        self._expected_head = expected_head
        self._found = expected_head in (None, head)

    def walk(self, rows: Iterable[AuditRow]) -> bool:
        """Go on with `rows`; tells whether all of them hold."""
        for row in rows:
            self._problem = self._find_problem(row)
            if self._problem:
                return False
            self.seq, self._head = row.seq, row.hash
            self._rows += 1
            self._found = self._found or row.hash == self._expected_head
        return True

    def verdict(self, end: int) -> AuditVerdict:
        """What was found about a log whose newest row should be `end`."""
        if not self._problem and self.seq < end:
            self._problem = f"row {self.seq + 1} is missing"
        if not self._problem and not self._found:
            self._problem = (
                f"no row has the expected head {self._expected_head}: "
                "the newest rows were cut off, or older ones rotated away or replaced"
            )
        first_bad = self.seq + 1 if self._problem else None
        return AuditVerdict(
            first_bad is None, self._rows, first_bad, self._problem, self._head, self._start
        )

    def _find_problem(self, row: AuditRow) -> str:
        expected = self.seq + 1
        if row.seq != expected:
            return f"row {expected} is missing"
        if row.previous != self._head:
            return f"row {expected} does not follow the row before it: one of them was replaced"
        try:
            actual = chain_hash(fields_json(row.entry), row.seq, row.previous)
        except ValueError:  # bytes that are no text any more
            actual = ""
        return "" if row.hash == actual else f"row {expected} was changed: its hash does not fit"


def cannot_rotate(verdict: AuditVerdict) -> ConflictError:
    """The refusal to archive a chain that is broken: what is rotated away cannot be found later."""
    return ConflictError(
        f"the audit log is not rotated, because it is broken: {verdict.problem}",
        hint="'remit audit verify' shows what is wrong; keep a copy of the database",
        details={"first_bad": verdict.first_bad},
    )


def check_keep(keep: int) -> None:
    """Refuse to keep less than nothing."""
    if keep < 0:
        raise InvalidDataError(
            f"{keep} rows cannot be kept", hint="keep 0 or more", details={"path": "$.keep"}
        )


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
