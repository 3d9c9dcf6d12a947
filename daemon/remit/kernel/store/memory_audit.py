"""The audit log in memory."""

from collections.abc import Callable, Sequence
from typing import Unpack

from anyio import to_thread

from remit.kernel.audit.store import check_before, check_where, matcher
from remit.kernel.store.audit_chain import (
    ChainWalk,
    cannot_rotate,
    chain_hash,
    check_entry,
    check_keep,
    entry_size,
)
from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.pages import check_limit, cut
from remit.kernel.store.protocol import PAGE_BYTES, PAGE_LIMIT
from remit.kernel.store.records import (
    AuditEntry,
    AuditHead,
    AuditPage,
    AuditRow,
    AuditVerdict,
    AuditWhere,
)


class MemoryAudit(MemoryTables):
    """See `AuditStore` for what each method promises."""

    async def audit_append(self, entry: AuditEntry, *, is_essential: bool = False) -> AuditRow:
        """Write an entry behind all others."""
        fields = check_entry(entry)
        seq, previous = self._newest()
        row = AuditRow(seq + 1, entry, previous, chain_hash(fields, seq + 1, previous))
        self._audit.append(row)
        return row

    async def audit_query(
        self, *, limit: int = PAGE_LIMIT, before: int | None = None, **where: Unpack[AuditWhere]
    ) -> AuditPage:
        """Rows that are like `where`, newest first, from in front of row `before`."""
        check_limit(limit)
        check_before(before)
        matches = matcher(check_where(where))
        found = (
            row
            for row in reversed(self._audit)
            if (before is None or row.seq < before) and matches(row.entry)
        )
        items, more = cut(found, limit, PAGE_BYTES, entry_size)
        return AuditPage(tuple(items), items[-1].seq if more else None)

    async def audit_verify(self, *, expected_head: str | None = None) -> AuditVerdict:
        """Prove the chain from its anchor to its end, or name the first broken row."""
        walk = ChainWalk(*self._anchor, expected_head=expected_head)
        walk.walk(self._audit)
        return walk.verdict(self._newest()[0])

    async def audit_head(self) -> AuditHead | None:
        """Nothing: a log in memory has no outside."""
        return None

    async def audit_rotate(self, keep: int, archive: Callable[[Sequence[AuditRow]], None]) -> int:
        """Hand all but the newest `keep` rows to `archive`, then forget them; tells how many."""
        check_keep(keep)
        async with self._rotating:
            rows = self._audit[: max(len(self._audit) - keep, 0)]
            if not rows:
                return 0
            walk = ChainWalk(*self._anchor)
            if not walk.walk(rows):
                raise cannot_rotate(walk.verdict(rows[-1].seq))
            await to_thread.run_sync(archive, rows)
            self._anchor = (rows[-1].seq, rows[-1].hash)
            del self._audit[: len(rows)]
            return len(rows)

    def _newest(self) -> tuple[int, str]:
        if not self._audit:
            return self._anchor
        return self._audit[-1].seq, self._audit[-1].hash
