"""The archives of the audit, and the proof of all of it: archives, table and head.

Rows that left the log are JSON lines beside the database, which still prove the chain. Each line is
a row with its `hash`, and the `previous` hash that it covers; `details` is the text that was
hashed. Archives must lead from the beginning to the row behind which the table goes on, the
table must hold to its end, and the end must be the one that the head vouches for.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread
import msgspec

from remit.errors import NotFoundError, StoreError
from remit.kernel.audit.chain import (
    GENESIS,
    AuditEntry,
    AuditHead,
    AuditRow,
    AuditTable,
    AuditVerdict,
    ChainWalk,
    Place,
)
from remit.kernel.audit.head import Head, HeadFile, head_problem, read_head, told

_FILES = "*.jsonl"


class ArchiveVerdict(msgspec.Struct, frozen=True):
    """The result of proving the archives, and the row behind which the log has to go on."""

    files: int = 0
    rows: int = 0
    ok: bool = True
    first_bad: int | None = None
    problem: str = ""
    last: int = 0
    """The last row that was proved, with its hash."""
    head: str = ""
    holds_expected: bool = False
    """Whether the head that somebody noted is one of the archived rows."""


class Archive:
    """The folder of archived rows. Its methods block: they belong in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, rows: Sequence[AuditRow]) -> None:
        """Keep a part of the log; it is on disk, whole, when this returns."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{rows[0].seq:012d}-{rows[-1].seq:012d}.jsonl"
        part = path.with_suffix(".part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor with its own mode
            file.writelines(_line(row) for row in rows)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
        _sync_folder(self._folder)

    def prove(self, base: Place, anchor: Place, expected_head: str | None = None) -> ArchiveVerdict:
        """Walk the archived rows behind `base`, which must lead to `anchor`, or name the first bad.

        Rows behind the anchor may be there too: a crash came before the log forgot them.
        """
        files = sorted(self._folder.glob(_FILES))
        walk = ChainWalk(*base)
        found, problem = False, ""
        for row in _rows(files):
            if row.seq <= walk.seq:
                continue  # archived twice, or before what was accepted
            if not walk.walk([row]):
                return _told(len(files), walk.verdict(row.seq), found)
            found = found or row.hash == expected_head
            if row.seq == anchor[0] and row.hash != anchor[1]:
                problem = f"archived row {row.seq} is not the one that the log goes on from"
                break
        verdict = walk.verdict(max(anchor[0], walk.seq))
        if problem:
            verdict = msgspec.structs.replace(
                verdict, ok=False, first_bad=anchor[0], problem=problem
            )
        return _told(len(files), verdict, found)

    def begin(self) -> Place | None:
        """The row before the first archived one, if there are any."""
        for row in _rows(sorted(self._folder.glob(_FILES))):
            return (row.seq - 1, row.previous) if row.previous else None
        return None


class ProvableLog(Protocol):
    """A table of the audit, of a store or of a file."""

    async def audit_head(self) -> AuditHead | None:
        """What vouches for the end of the log from outside, if anything does."""

    async def audit_verify(self, *, expected_head: str | None = None) -> AuditVerdict:
        """Prove the chain from its anchor to its end, or name the first broken row."""


async def prove(
    log: ProvableLog, archive: Archive | None, expected_head: str | None = None
) -> dict[str, Any]:
    """Prove all of it; `expected_head` is a hash that somebody noted, which must be a row."""
    head = await log.audit_head()
    verdict = await log.audit_verify()
    archived = None
    if archive is not None:
        base = head.base if head is not None else (0, GENESIS)
        archived = await anyio.to_thread.run_sync(
            archive.prove, base, verdict.anchor, expected_head
        )
    if verdict.ok:
        verdict = await _with_heads(log, verdict, archived, expected_head)
    return _answer(verdict, archived, head)


async def _with_heads(
    log: ProvableLog,
    verdict: AuditVerdict,
    archived: ArchiveVerdict | None,
    expected_head: str | None,
) -> AuditVerdict:
    """The verdict about the table, which must also hold the row that was noted."""
    wanted = [] if archived is not None and archived.holds_expected else [expected_head]
    if archived is not None and archived.ok and archived.last > verdict.anchor[0]:
        wanted.append(archived.head)  # it was archived and not forgotten yet
    for one in filter(None, wanted):
        found = await log.audit_verify(expected_head=one)
        if not found.ok:
            return found
    return verdict


def _answer(
    verdict: AuditVerdict, archived: ArchiveVerdict | None, head: AuditHead | None
) -> dict[str, Any]:
    first_bad, problems = verdict.first_bad, [verdict.problem] if verdict.problem else []
    answer: dict[str, Any] = {"rows": verdict.rows, "head": verdict.head}
    if archived is not None:
        answer["archived"] = {"files": archived.files, "rows": archived.rows}
        if not archived.ok:
            first_bad = archived.first_bad
            problems.append(f"in the archive: {archived.problem}")
    if head is not None:
        newest = verdict.anchor[0] + verdict.rows
        behind = max(newest - head.seq, 0)
        answer["signed"] = {"since": head.since, "seq": head.seq, "behind": behind}
        if head.problem:
            problems.append(head.problem)
    return {"ok": not problems, "first_bad": first_bad, "problem": "; ".join(problems)} | answer


class AuditReader:
    """The table and the head as they lie there; its methods block."""

    def __init__(self, database: Path, head: HeadFile) -> None:
        """Name the files.

        Raises:
            NotFoundError: there is no database.
        """
        if not database.is_file():
            raise NotFoundError(
                f"{database}: there is no store here",
                hint="no daemon has served from this home; choose another with --home",
            )
        self._database = database
        self._head = head

    async def audit_head(self) -> AuditHead:
        """What the head tells about the table as it is now."""
        # The head first: a daemon that runs writes it last.
        found, problem = read_head(self._head)
        if found is None:
            problem = problem or f"{self._head.path} is missing: what the log must end with"
        try:
            with self._open() as table:
                if found is not None:
                    problem = found.problem or head_problem(found, table)
        except (sqlite3.Error, StoreError):
            pass  # the table says so itself
        return told(found or Head(), problem)

    async def audit_verify(self, *, expected_head: str | None = None) -> AuditVerdict:
        """Prove the chain from its anchor to its end, or name the first broken row."""
        try:
            with self._open() as table:
                end, _ = table.newest()
                walk = ChainWalk(*table.anchor(), expected_head=expected_head)
                for rows in table.chunks(after=walk.seq, end=end):
                    if not walk.walk(rows):
                        break
                return walk.verdict(end)
        except (sqlite3.Error, StoreError) as error:
            problem = f"the table of the audit cannot be read: {error}"
            return AuditVerdict(ok=False, rows=0, first_bad=None, problem=problem, head="")

    @contextmanager
    def _open(self) -> Iterator[AuditTable]:
        uri = f"{self._database.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            connection.execute("BEGIN")  # one moment, whatever a daemon writes meanwhile
            yield AuditTable(connection)
        finally:
            connection.close()


def _told(files: int, verdict: AuditVerdict, found: bool) -> ArchiveVerdict:  # noqa: FBT001
    start, _ = verdict.anchor
    return ArchiveVerdict(
        files=files,
        rows=verdict.rows,
        ok=verdict.ok,
        first_bad=verdict.first_bad,
        problem=verdict.problem,
        last=start + verdict.rows,
        head=verdict.head,
        holds_expected=found,
    )


def _line(row: AuditRow) -> bytes:
    fields = msgspec.structs.asdict(row.entry) | {"details": row.entry.details.decode()}
    flat = {"seq": row.seq, **fields, "previous": row.previous, "hash": row.hash}
    return msgspec.json.encode(flat) + b"\n"


def _rows(files: Sequence[Path]) -> Iterator[AuditRow]:
    for path in files:
        for line in path.read_bytes().splitlines():
            try:
                yield _row(msgspec.json.decode(line))
            except (msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError):
                # Stands for a row that cannot follow any other: the walk names its place.
                yield AuditRow(2**62, AuditEntry(0.0, "", "", "", "", "", 0), "", "")
                return


def _row(fields: dict[str, Any]) -> AuditRow:
    seq, previous, digest = fields.pop("seq"), fields.pop("previous"), fields.pop("hash")
    fields["details"] = fields["details"].encode()
    return AuditRow(int(seq), AuditEntry(**fields), str(previous), str(digest))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
