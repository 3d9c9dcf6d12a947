"""Putting edited definitions in force while everything goes on, and telling everybody.

Whoever asks (the watcher, SIGHUP, `config:reload`) comes through `Reloader.reload`. One reload runs
at a time, and all who ask while it runs share the one after it. Compiling happens in a thread; what
is then swapped is one reference, so no decision ever mixes two revisions. Events that come and go
(`Reloader.change_events`) take the same way: they are a new revision of the same files.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec
import structlog

from remit.errors import DefinitionError, Problem, StoreError
from remit.kernel.authority.plans import (
    changes_between,
    describe_agents,
    holdings,
    plan_between,
)
from remit.kernel.authority.revision import Authority, HandlerTable, Revision, altered_tools
from remit.kernel.reload.full_reload import NO_CHANGE, Outcome
from remit.kernel.reload.last_good import keep
from remit.kernel.store.rows import BlobRows
from remit.model.capability import RuntimeCapability
from remit.model.principal import DAEMON_ID, Cause
from remit.model.schema import bounded
from remit.policy.plan import Plan

if TYPE_CHECKING:
    from remit.kernel.audit.log import AuditLog
    from remit.kernel.bus.delivery import Delivery

log = structlog.get_logger()

CHANGED = "config:changed"
REJECTED = "config:rejected"

_MOST_NAMES = 100
_MOST_PROBLEMS = 10
_WRITE_SECONDS = 5.0
_KEEP_SECONDS = 5.0


class Reloader:
    """Brings the definitions on disk in force."""

    def __init__(
        self, authority: Authority, delivery: "Delivery", store: BlobRows, audit: "ConfigAudit"
    ) -> None:
        self.audit = audit
        self._authority = authority
        self._delivery = delivery
        self._store = store
        self._lock = anyio.Lock()
        self._begun = 0
        self._last: Outcome | None = None

    async def reload(self, cause: Cause) -> Outcome:
        """Read the files and put them in force, all or nothing; never raises DefinitionError.

        Raises:
            StoreError: somebody would get more, and that cannot be written down.
        """
        seen = self._begun
        async with self._lock:
            if self._begun > seen and self._last is not None:
                return self._last  # it began after we asked, so it has read what we mean
            self._begun += 1
            self._last = None
            self._last = await self._run(cause)
            return self._last

    async def change_events(
        self, change: Callable[[HandlerTable], HandlerTable], cause: Cause
    ) -> Outcome:
        """Put other events in force under the files as they are, all or nothing.

        Args:
            change: makes the handlers of the next revision out of those in force.
            cause: why, and who wanted it.

        Raises:
            DefinitionError: the files in force do not compile with these events.
            StoreError: somebody would get more, and that cannot be written down.
        """
        async with self._lock:
            while True:
                before = self._authority.current
                table = change(before.table)
                if table is before.table:
                    return Outcome(changed=False, revision=before.catalogue.revision)
                after = await anyio.to_thread.run_sync(self._authority.prepare_events, table)
                outcome = await self._bring(before, after, cause)
                if outcome is not None:
                    return outcome

    async def change_made(
        self,
        change: Callable[[tuple[RuntimeCapability, ...]], tuple[RuntimeCapability, ...]],
        cause: Cause,
    ) -> Outcome:
        """Put other capabilities made at run time in force under the files as they are.

        Args:
            change: makes those of the next revision out of those in force.
            cause: why, and who wanted it.

        Raises:
            DefinitionError: the files in force do not compile with them.
            StoreError: somebody would get more, and that cannot be written down.
        """
        async with self._lock:
            while True:
                before = self._authority.current
                made = change(before.made)
                after = await anyio.to_thread.run_sync(self._authority.prepare_made, made)
                outcome = await self._bring(before, after, cause)
                if outcome is not None:
                    return outcome

    async def plan(self) -> Plan:
        """What a reload would change, for how many agents; nothing is put in force.

        Raises:
            DefinitionError: the files do not compile.
        """
        return await anyio.to_thread.run_sync(self._plan)

    def _plan(self) -> Plan:
        before, after = self._authority.current, self._authority.prepare()
        return plan_for(self._authority, before, after)

    async def begin(self, difference: Outcome | None) -> None:
        """Write down and tell how this run begins, if it is not as the last one ended."""
        cause, authority = Cause("started"), self._authority
        revision = authority.catalogue.revision
        if authority.is_stale:
            await self.audit.rejected(cause, authority.rejected, revision=revision)
        if difference is None:
            return
        try:
            await self.audit.changed(
                cause, difference.plan, before=difference.revision - 1, after=revision
            )
        except StoreError as error:  # without a daemon nobody could find out what is wrong
            log.warning("audit_failed", problem=error.message, event_name=CHANGED)
        self.announce(difference)

    async def _run(self, cause: Cause) -> Outcome:
        while True:
            before = self._authority.current
            try:
                after = await anyio.to_thread.run_sync(self._authority.prepare)
            except DefinitionError as error:
                return await self._reject(error.problems, cause)
            if after is before:
                return await self._unchanged(cause)
            outcome = await self._bring(before, after, cause)
            if outcome is not None:
                return outcome

    async def _bring(self, before: Revision, after: Revision, cause: Cause) -> Outcome | None:
        """Write a revision down, keep it and put it in force; None when it was overtaken."""
        altered = altered_tools(before, after)
        version = self._authority.fleet.version
        plan = await anyio.to_thread.run_sync(plan_for, self._authority, before, after)
        numbers = {"before": before.catalogue.revision, "after": after.catalogue.revision}
        with anyio.CancelScope(shield=True):
            await self.audit.changed(cause, plan, **numbers)
            await self._keep(after)
            if self._authority.current is before:  # from here on nobody acts in between
                missed = NO_CHANGE
                if self._authority.fleet.version != version:
                    plan, missed = self._with_late(plan, after, altered)
                outcome = self._put_in_force(after, plan)
                if missed.agent_changes:
                    await self._write_late(cause, missed, **numbers)
                return outcome
            # Somebody's approval came in between: this was compiled without it.
            await self.audit.overtaken(cause, **numbers)
        return None

    async def _keep(self, after: Revision) -> None:
        with anyio.move_on_after(_KEEP_SECONDS) as scope:
            await keep(self._store, after)
        if scope.cancelled_caught:
            log.error("config_not_kept", problem=f"the store took over {_KEEP_SECONDS:g} s")

    async def _write_late(self, cause: Cause, missed: Plan, *, before: int, after: int) -> None:
        """Write down who was spawned or changed while the change itself was being written."""
        try:
            await self.audit.changed(cause, missed, before=before, after=after)
        except StoreError as error:  # it is in force: what gave them more is in the audit
            log.warning("audit_failed", problem=error.message, event_name=CHANGED)

    def _with_late(self, plan: Plan, after: Revision, altered: frozenset[str]) -> tuple[Plan, Plan]:
        """The plan for the agents of now, and the part of it that was not planned."""
        fleet, catalogues = self._authority.fleet, (self._authority.catalogue, after.catalogue)
        held, holds = (holdings(fleet, catalogue) for catalogue in catalogues)
        changes = changes_between(held, holds, altered)
        found = describe_agents(fleet, *catalogues, changes, fleet.names())
        late = {name: one for name, one in found.items() if plan.agent_changes.get(name) != one}
        return msgspec.structs.replace(plan, agent_changes=found), Plan({}, 0, late)

    def _put_in_force(self, after: Revision, plan: Plan) -> Outcome:
        """Swap the revision, then tell everybody; agents compute what they hold when they ask."""
        self._authority.put_in_force(after)
        outcome = Outcome(changed=True, revision=after.catalogue.revision, plan=plan)
        self.announce(outcome)
        changes = {name: one.change for name, one in plan.agent_changes.items()}
        changes = {name: one for name, one in changes.items() if not one.is_empty}
        self._delivery.tell_changes(changes, revision=outcome.revision)
        return outcome

    def announce(self, outcome: Outcome) -> None:
        """Log that there was a change, and tell those who watch the configuration what it was."""
        report = outcome.to_json()
        log.info(
            "config_changed",
            revision=outcome.revision,
            **report["summary"],
            hint="for whom: remit audit --event config:changed",
        )
        self._delivery.publish(CHANGED, report, DAEMON_ID)

    async def _unchanged(self, cause: Cause) -> Outcome:
        was_stale, self._authority.rejected = self._authority.is_stale, ()
        revision = self._authority.catalogue.revision
        outcome = Outcome(changed=False, revision=revision)
        if was_stale:  # the bad edit was taken back
            await self.audit.changed(cause, NO_CHANGE, before=revision, after=revision)
            self.announce(outcome)
        return outcome

    async def _reject(self, problems: tuple[Problem, ...], cause: Cause) -> Outcome:
        authority = self._authority
        revision = authority.catalogue.revision
        if problems != authority.rejected:
            authority.rejected = problems
            errors = [problem.to_json() for problem in problems]
            log.warning("config_rejected", revision=revision, problems=errors)
            body = bounded({"errors": errors, "revision": revision}, "errors")
            await self.audit.rejected(cause, problems, revision=revision)
            self._delivery.publish(REJECTED, body, DAEMON_ID)
        return Outcome(changed=False, revision=revision, problems=problems)


def plan_for(authority: Authority, before: Revision, after: Revision) -> Plan:
    """What one revision changes against another; may run in a thread."""
    if before is after:
        return Plan({}, len(before.catalogue.grants))
    altered = altered_tools(before, after)
    return plan_between(authority.fleet, before.catalogue, after.catalogue, altered=altered)


class ConfigAudit:
    """Writes down when the configuration changes, or when an edit of it is refused.

    A change is in the audit before it is in force. When that cannot be written, an edit that only
    takes away comes in force all the same: a full disk must not keep a right alive. One that gives
    waits.
    """

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
            with anyio.fail_after(_WRITE_SECONDS):
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
            raise StoreError(f"the store took over {_WRITE_SECONDS:g} s") from error


def _gains(plan: Plan) -> dict[str, list[str]]:
    """What each agent gets more, by name: the part of a change that somebody will look for."""
    found: dict[str, list[str]] = {}
    for name, one in itertools.islice(plan.agent_changes.items(), _MOST_NAMES):
        gained = [*one.change.granted, *one.change.tools_granted]
        if gained:
            found[name] = gained[:_MOST_NAMES]
    return found
