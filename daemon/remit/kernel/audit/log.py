"""What is written down about decisions, and when.

Changes are durable before they are made; when one then fails, a second row under the same decision
says so. A denial is durable before it is answered, or counted behind one like it that is. Allowed
reads are not written, unless a switch says how many of them. Old rows are archived, and the chain
stays provable over both.

Of the data of a request an entry holds a summary: enough to know what was asked, and no secrets.
"""

import random
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import structlog

from remit.errors import RemitError
from remit.kernel.audit.chain import AuditEntry
from remit.kernel.audit.denials import WINDOW, Denials
from remit.kernel.audit.proof import Archive, prove
from remit.kernel.audit.store import AuditRows
from remit.model.event import Denial, Notice, decisions_of

log = structlog.get_logger()

ENTRY_EVENT = "audit:entry"
_LEAST_STEP = 1000
_STEP_SHARE = 100
_GRACE = 1.0
MAX_BYTES = 2048
MAX_TEXT = 200
_MAX_ITEMS = 10
_MAX_KEYS = 24
_MAX_DEPTH = 4
_MASK = "***"
_SECRET = re.compile(
    r"secret|token|passw|passphrase|credential|private|api_?key|access_?key|authoriz|cookie",
    re.IGNORECASE,
)
_ENVIRONMENTS = frozenset({"env", "environment", "headers"})


class AuditLog:
    """Writes the audit, and shows each entry to those who watch."""

    def __init__(  # noqa: PLR0913 - what the settings say of the audit
        self,
        rows: AuditRows,
        *,
        clock: Callable[[], float],
        show: Callable[[Notice], None],
        sample: float = 0.0,
        archive: Archive | None = None,
        keep: int = 0,
        window: float = WINDOW,
    ) -> None:
        """Start auditing.

        Args:
            rows: where entries are kept.
            clock: the wall clock.
            show: tells watchers about an entry.
            sample: the share of allowed reads that is written, from 0 to 1.
            archive: where old rows go.
            keep: how many rows stay in the store; 0: all.
            window: seconds in which repeats of a denial become one row.
        """
        self.denials = Denials(self._write_denial, clock, window=window)
        self.rows = rows
        self._clock = clock
        self._show = show
        self._sample = sample
        self._archive = archive
        self._keep = keep
        self._step = max(_LEAST_STEP, keep // _STEP_SHARE)
        self._appended = 0
        self._due = anyio.Event()
        self._moving = anyio.Lock()

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
        details: dict[str, Any] | None = None,
        is_essential: bool = False,
    ) -> None:
        """Write an entry; it is durable when this returns. Essential ones have room on a full disk.

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
        row = await self.rows.audit_append(entry, is_essential=is_essential)
        self._count()
        details = details or {}
        data = msgspec.structs.asdict(entry) | {"seq": row.seq, "details": details}
        data["count"] = decisions_of(outcome, details)
        self._show(Notice(ENTRY_EVENT, data, principal, entry.at))

    async def _write_denial(
        self, denial: Denial, decision: str, revision: int, details: dict[str, Any]
    ) -> None:
        log.info(
            "denied",
            event_name=denial.event,
            principal=denial.principal,
            reason=denial.reason,
            count=details.get("count", 1),
        )
        await self.record(
            principal=denial.principal,
            event=denial.event,
            outcome="denied",
            reason=denial.reason,
            decision=decision,
            revision=revision,
            details=details,
            is_essential=True,
        )

    async def record_failure(
        self,
        *,
        principal: str,
        event: str,
        code: str,
        details: dict[str, Any],
        decision: str,
        revision: int,
    ) -> None:
        """Write that a change which was written down did not come about, or not wholly.

        It is written even for a caller that is gone; when it cannot be, the log says so.
        """
        with anyio.move_on_after(_GRACE, shield=True) as scope:
            try:
                await self.record(
                    principal=principal,
                    event=event,
                    outcome="failed",
                    reason=code,
                    decision=decision,
                    revision=revision,
                    details=details,
                    is_essential=True,
                )
            except RemitError as error:
                log.warning("audit_failed", problem=error.message, decision=decision)
        if scope.cancelled_caught:
            log.warning("audit_failed", problem="the store is slow", decision=decision)

    # ---- proof and rotation ----

    async def verify(self, expected_head: str | None = None) -> dict[str, Any]:
        """Prove the log, its archives and its head, or name the first broken row."""
        async with self._moving:
            return await prove(self.rows, self._archive, expected_head)

    async def rotate(self) -> int:
        """Archive all but the newest rows; tells how many went. What fails is tried again later."""
        if self._archive is None or not self._keep:
            return 0
        try:
            async with self._moving:
                moved = await self.rows.audit_rotate(self._keep, self._archive.write)
        except (RemitError, OSError) as error:
            log.warning("audit_not_rotated", problem=str(error))
            return 0
        if moved:
            log.info("audit_rotated", rows=moved)
        return moved

    @asynccontextmanager
    async def rotating(self) -> AsyncGenerator[None]:
        """Rotate now, and whenever enough was written, as long as this is open."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._rotate_when_due)
            yield
            group.cancel_scope.cancel()

    async def _rotate_when_due(self) -> None:
        while True:
            await self.rotate()
            await self._due.wait()
            self._due = anyio.Event()

    def _count(self) -> None:
        self._appended += 1
        if self._keep and self._appended % self._step == 0:
            self._due.set()


def summary(data: Any) -> dict[str, Any]:
    """A bounded summary of request data, with what looks like a secret masked."""
    try:
        plain = msgspec.to_builtins(data, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return {"unreadable": True}
    if not isinstance(plain, dict):
        plain = {"value": plain}
    short = _short(plain, 0)
    size = len(msgspec.json.encode(short))
    if size <= MAX_BYTES:
        return dict(short)
    return {"shortened": True, "bytes": size, "fields": [_text(str(key)) for key in short][:10]}


def _short(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict | list) and depth == _MAX_DEPTH:
        return f"… ({len(value)} inside)"
    if isinstance(value, dict):
        return _object(value, depth)
    if isinstance(value, list):
        shown = [_short(item, depth + 1) for item in value[:_MAX_ITEMS]]
        more = len(value) - len(shown)
        return [*shown, f"… ({more} more)"] if more else shown
    return value


def _object(value: dict[str, Any], depth: int) -> dict[str, Any]:
    # A state value is as secret as the name of its key.
    masked = {"value"} if _is_secret(value.get("key")) else set()
    shown: dict[str, Any] = {}
    for name in list(value)[:_MAX_KEYS]:
        inside = value[name]
        if inside is not None and (name in masked or _is_secret(name)):
            shown[_text(name)] = _MASK
        elif name in _ENVIRONMENTS and isinstance(inside, dict):
            shown[name] = dict.fromkeys(map(_text, list(inside)[:_MAX_KEYS]), _MASK)
        else:
            shown[_text(name)] = _short(inside, depth + 1)
    if len(value) > _MAX_KEYS:
        shown["…"] = f"{len(value) - _MAX_KEYS} more"
    return shown


def _is_secret(name: Any) -> bool:
    return isinstance(name, str) and _SECRET.search(name) is not None


def _text(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:100]}… ({len(text)} characters)"
