"""The proof of the whole audit: its archives, its table, and the head that is kept outside of it.

Archives must lead from the beginning to the row behind which the table goes on, the table must hold
to its end, and the end must be the one that the head vouches for.
"""

from typing import Any, Protocol

import anyio.to_thread

from remit.kernel.audit.archive import Archive, ArchiveVerdict
from remit.kernel.store.audit_chain import GENESIS
from remit.kernel.store.records import AuditHead, AuditVerdict


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
