"""Putting edited definitions in force while everything goes on, and telling everybody.

Whoever asks (the watcher, SIGHUP, `config:reload`) comes through `Reloader.reload`. One reload runs
at a time, and all who ask while it runs share the one after it. Compiling happens in a thread; what
is then swapped is one reference, so no decision ever mixes two revisions.
"""

from typing import Any

import anyio
import anyio.to_thread
import msgspec
import structlog

from remit.model.place import DefinitionError, Problem
from remit.policy.plan import Plan
from remit.policy.plan import plan as make_plan
from remit.runtime.authority import Authority, Revision
from remit.runtime.changes import changes_between, holdings, tell
from remit.runtime.courier import Courier
from remit.runtime.kept import keep
from remit.runtime.paging import bounded
from remit.store.protocol import BlobStore

log = structlog.get_logger()

CHANGED = "config:changed"
REJECTED = "config:rejected"
ORIGIN = "daemon"

_KEEP_SECONDS = 5.0
NO_CHANGE = Plan({}, 0)


class Outcome(msgspec.Struct, frozen=True):
    """How a reload ended. With problems nothing changed, and the old revision is marked stale."""

    changed: bool
    revision: int
    plan: Plan = NO_CHANGE
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The plan, and what came of it."""
        return bounded(
            self.plan.to_json() | {"revision": self.revision, "changed": self.changed}, "profiles"
        )


class Reloader:
    """Brings the definitions on disk in force."""

    def __init__(self, authority: Authority, courier: Courier, store: BlobStore) -> None:
        self._authority = authority
        self._courier = courier
        self._store = store
        self._lock = anyio.Lock()
        self._begun = 0
        self._last: Outcome | None = None

    async def reload(self) -> Outcome:
        """Read the files and put them in force, all or nothing; never raises DefinitionError."""
        seen = self._begun
        async with self._lock:
            if self._begun > seen and self._last is not None:
                return self._last  # it began after we asked, so it has read what we mean
            self._begun += 1
            self._last = None
            self._last = await self._run()
            return self._last

    async def plan(self) -> Plan:
        """What a reload would change, for how many agents; nothing is put in force.

        Raises:
            DefinitionError: the files do not compile.
        """
        return await anyio.to_thread.run_sync(self._plan)

    def _plan(self) -> Plan:
        before, after = self._authority.current, self._authority.prepare()
        return plan_for(self._authority, before, after)

    async def _run(self) -> Outcome:
        while True:
            before = self._authority.current
            try:
                after = await anyio.to_thread.run_sync(self._authority.prepare)
            except DefinitionError as error:
                return self._reject(error.problems)
            if after is before:
                return self._unchanged()
            with anyio.CancelScope(shield=True):
                await self._keep(after)
                if self._authority.current is before:
                    return self._put_in_force(after)
            # Somebody's approval came in between: this was compiled without it.

    async def _keep(self, after: Revision) -> None:
        with anyio.move_on_after(_KEEP_SECONDS) as scope:
            await keep(self._store, after)
        if scope.cancelled_caught:
            log.error("config_not_kept", problem=f"the store took over {_KEEP_SECONDS:g} s")

    def _put_in_force(self, after: Revision) -> Outcome:
        """Without awaiting: nobody is told anything before, and nobody acts in between."""
        authority, fleet = self._authority, self._authority.fleet
        before = authority.current
        held = holdings(fleet, before.catalogue)
        authority.put_in_force(after)
        changes = changes_between(held, holdings(fleet, after.catalogue))
        plan = make_plan(before.catalogue.grants, after.catalogue.grants, agents=len(changes))
        outcome = Outcome(changed=True, revision=after.catalogue.revision, plan=plan)
        self.announce(outcome)
        tell(self._courier, changes, revision=outcome.revision)
        return outcome

    def announce(self, outcome: Outcome) -> None:
        """Log a change and tell those who watch the configuration."""
        report = outcome.to_json()
        log.info(
            "config_changed",
            revision=outcome.revision,
            changes=report["profiles"],
            **report["summary"],
        )
        self._courier.publish(CHANGED, report, ORIGIN)

    def _unchanged(self) -> Outcome:
        was_stale, self._authority.rejected = self._authority.is_stale, ()
        revision = self._authority.catalogue.revision
        outcome = Outcome(changed=False, revision=revision)
        if was_stale:  # the bad edit was taken back
            self.announce(outcome)
        return outcome

    def _reject(self, problems: tuple[Problem, ...]) -> Outcome:
        authority = self._authority
        revision = authority.catalogue.revision
        if problems != authority.rejected:
            authority.rejected = problems
            errors = [problem.to_json() for problem in problems]
            log.warning("config_rejected", revision=revision, problems=errors)
            body = bounded({"errors": errors, "revision": revision}, "errors")
            self._courier.publish(REJECTED, body, ORIGIN)
        return Outcome(changed=False, revision=revision, problems=problems)


def plan_for(authority: Authority, before: Revision, after: Revision) -> Plan:
    """What one revision changes against another, for how many agents; may run in a thread."""
    if before is after:
        return Plan({}, len(before.catalogue.grants))
    held = holdings(authority.fleet.copy(), before.catalogue)
    then = holdings(authority.fleet.copy(), after.catalogue)
    agents = len(changes_between(held, then))
    return make_plan(before.catalogue.grants, after.catalogue.grants, agents=agents)
