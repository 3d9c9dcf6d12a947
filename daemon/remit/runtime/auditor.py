"""What is written down about decisions, and when.

Denials and changes are durable before they are answered. Allowed reads are not written, unless a
switch says how many of them: then they are written behind the answer and may be lost in a crash.
"""

import random
from collections.abc import Callable

import msgspec
import structlog

from remit.errors import StoreError
from remit.model.notice import Notice
from remit.store.protocol import AuditStore
from remit.store.records import AuditEntry

log = structlog.get_logger()

ENTRY_EVENT = "audit:entry"


class Auditor:
    """Writes the audit, and shows each entry to those who watch."""

    def __init__(
        self,
        store: AuditStore,
        *,
        clock: Callable[[], float],
        show: Callable[[Notice], None],
        sample: float = 0.0,
    ) -> None:
        """Start auditing.

        Args:
            store: where entries are kept.
            clock: the wall clock.
            show: tells watchers about an entry.
            sample: the share of allowed reads that is written, from 0 to 1.
        """
        self._store = store
        self._clock = clock
        self._show = show
        self._sample = sample

    def wants_grant(self) -> bool:
        """Tell whether this allowed read is one of the sampled ones."""
        sample = self._sample
        return sample > 0 and (sample >= 1 or random.random() < sample)  # noqa: S311 - no secret

    async def record(  # noqa: PLR0913 - the columns of an entry
        self,
        *,
        principal: str,
        event: str,
        outcome: str,
        reason: str,
        decision: str,
        revision: int,
        details: dict[str, object] | None = None,
    ) -> None:
        """Write an entry; it is durable when this returns.

        Raises:
            StoreError: it could not be written.
        """
        entry = AuditEntry(
            at=self._clock(),
            principal=principal,
            event=event,
            outcome=outcome,
            reason=reason,
            decision=decision,
            revision=revision,
            details=msgspec.json.encode(details or {}),
        )
        row = await self._store.audit_append(entry)
        data = msgspec.structs.asdict(entry) | {"seq": row.seq, "details": details or {}}
        self._show(Notice(ENTRY_EVENT, data, principal, entry.at))

    async def record_denial(
        self, *, principal: str, event: str, reason: str, decision: str, revision: int
    ) -> None:
        """Write a denial; when even that fails it is still a denial, and the log says so."""
        try:
            await self.record(
                principal=principal,
                event=event,
                outcome="denied",
                reason=reason,
                decision=decision,
                revision=revision,
            )
        except StoreError as error:
            log.warning("audit_failed", problem=error.message, decision=decision)
