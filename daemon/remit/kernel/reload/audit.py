"""What is written down when the configuration changes, or when an edit of it is refused.

A change is in the audit before it is in force. When that cannot be written, an edit that only takes
away comes in force all the same: a full disk must not keep a right alive. One that gives waits.
"""

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from remit.errors import Problem, StoreError
from remit.model.principal import Cause
from remit.policy.plan import Plan

if TYPE_CHECKING:
    from remit.kernel.audit.log import AuditLog

log = structlog.get_logger()

CHANGED = "config:changed"
REJECTED = "config:rejected"

_MOST_NAMES = 100
_MOST_PROBLEMS = 10
_SECONDS = 5.0


class ConfigAudit:
    """Writes rows about the configuration."""

    def __init__(self, audit_log: "AuditLog") -> None:
        self._audit_log = audit_log

    async def changed(self, cause: Cause, plan: Plan, *, before: int, after: int) -> None:
        """Write a change before it is made.

        Raises:
            StoreError: it cannot be written, and somebody would get more.
        """
        details = {
            "summary": plan.to_json()["summary"],
            "profiles": list(plan.changes)[:_MOST_NAMES],
            "agents": list(plan.agent_changes)[:_MOST_NAMES],
            "granted": _gains(plan),
        }
        columns = (CHANGED, "allowed", cause.what, before, after, details)
        try:
            await self._write(cause, *columns, is_essential=not plan.widens)
        except StoreError as error:
            if plan.widens:
                raise
            log.warning("audit_failed", problem=error.message, event_name=CHANGED, revision=after)

    async def overtaken(self, cause: Cause, *, before: int, after: int) -> None:
        """Write that a change which was written down did not come about as it was."""
        await self._write_if_possible(cause, CHANGED, "failed", "conflict", before, after, {})

    async def rejected(self, cause: Cause, problems: Iterable[Problem], *, revision: int) -> None:
        """Write that an edit was refused; it is refused whether or not that is written."""
        found = [problem.to_json() for problem in problems]
        details = {"errors": len(found), "first": found[:_MOST_PROBLEMS]}
        await self._write_if_possible(
            cause, REJECTED, "failed", "invalid_definition", revision, revision, details
        )

    async def _write_if_possible(self, cause: Cause, event: str, *columns: Any) -> None:
        try:
            await self._write(cause, event, *columns)
        except StoreError as error:
            log.warning("audit_failed", problem=error.message, event_name=event)

    async def _write(  # noqa: PLR0913, PLR0917 - the columns of an entry
        self,
        cause: Cause,
        event: str,
        outcome: str,
        reason: str,
        before: int,
        after: int,
        details: dict[str, Any],
        *,
        is_essential: bool = False,
    ) -> None:
        revisions = {"revision_before": before, "revision_after": after}
        try:
            with anyio.fail_after(_SECONDS):
                await self._audit_log.record(
                    principal=cause.by,
                    event=event,
                    outcome=outcome,
                    reason=reason,
                    decision=cause.decision,
                    revision=after,
                    details={"cause": cause.what, **revisions, **details},
                    is_essential=is_essential,
                )
        except TimeoutError as error:
            raise StoreError(f"the store took over {_SECONDS:g} s") from error


def _gains(plan: Plan) -> dict[str, list[str]]:
    """What each agent gets more, by name: the part of a change that somebody will look for."""
    found: dict[str, list[str]] = {}
    for name, one in itertools.islice(plan.agent_changes.items(), _MOST_NAMES):
        gained = [*one.change.granted, *one.change.tools_granted]
        if gained:
            found[name] = gained[:_MOST_NAMES]
    return found
