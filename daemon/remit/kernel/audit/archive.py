"""Rows that left the audit log: JSON lines beside the database, which still prove the chain.

Each line is a row with its `hash`, and the `previous` hash that it covers; `details` is the text
that was hashed. The newest archived hash is where the log in the database goes on.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from remit.kernel.store.audit_chain import ChainWalk
from remit.kernel.store.audit_head import Place
from remit.kernel.store.records import AuditEntry, AuditRow, AuditVerdict

_FILES = "*.jsonl"


class ArchiveVerdict(msgspec.Struct, frozen=True):
    """Whether the archived rows are whole, and where the log has to go on."""

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
