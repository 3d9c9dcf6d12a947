"""The revision in force, and the grants that follow from it.

One reference is swapped on reload, so every decision comes from one whole revision. A configuration
that does not compile changes nothing: the last good one stays in force and is marked stale.
"""

from collections.abc import Callable, Iterable

import msgspec

from remit.config.definitions import parse_definitions
from remit.config.files import Files
from remit.model.event import EventSpec
from remit.model.grant import Grant
from remit.model.place import DefinitionError, Problem
from remit.model.principal import Principal
from remit.policy.catalogue import Approval, Catalogue
from remit.policy.compiler import compile_definitions
from remit.policy.plan import Plan, plan
from remit.policy.resolve import grant_everything
from remit.policy.universe import Universe, make_universe
from remit.runtime.fleet import NOTHING, Fleet


class Revision(msgspec.Struct, frozen=True, eq=False):
    """A compiled catalogue, the files it came from, and the operator's grant in it."""

    catalogue: Catalogue
    files: Files
    everything: Grant


def compile_files(
    files: Files,
    universe: Universe,
    *,
    revision: int = 1,
    approvals: frozenset[Approval] = frozenset(),
) -> Revision:
    """Compile a set of files.

    Raises:
        DefinitionError: they do not compile; every problem carries the line it stands on.
    """
    try:
        catalogue = compile_definitions(
            parse_definitions(files), universe, revision=revision, approvals=approvals
        )
    except DefinitionError as error:
        raise DefinitionError(files.illustrate(error.problems)) from None
    shown = files.illustrate(catalogue.warnings)
    catalogue = msgspec.structs.replace(catalogue, warnings=shown)
    return Revision(catalogue, files, grant_everything(catalogue))


class Authority:
    """Answers who holds what, now."""

    def __init__(
        self,
        events: Iterable[EventSpec],
        read: Callable[[], Files],
        *,
        fleet: Fleet | None = None,
        approvals: frozenset[Approval] = frozenset(),
        revision: int = 1,
        last_good: Files | None = None,
    ) -> None:
        """Compile the first revision.

        Args:
            events: the events that have handlers.
            read: reads the definition files again each time.
            fleet: the living agents.
            approvals: the security reviews that were approved.
            revision: the number to begin with.
            last_good: what was in force before; it is used, marked stale, when the files that are
                read do not compile.

        Raises:
            DefinitionError: the definitions do not compile.
        """
        self.fleet = fleet or Fleet()
        self._universe = make_universe(events)
        self._read = read
        self._approvals = approvals
        self.rejected: tuple[Problem, ...] = ()
        self.current = self._first(revision, last_good)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue in force."""
        return self.current.catalogue

    @property
    def is_stale(self) -> bool:
        """Tell whether newer files were refused."""
        return bool(self.rejected)

    def grant(self, principal: Principal) -> Grant:
        """What a principal holds in the present revision; one that does not live holds nothing."""
        current = self.current
        if principal.kind == "operator":
            return current.everything
        if not self.fleet.lives(principal):
            return NOTHING  # also when somebody else has the name by now
        return self.fleet.grant(principal.id, current.catalogue)

    def prepare(self) -> Revision:
        """Read and compile the files as the next revision; the present one when nothing changed.

        Nothing is put in force, so this may run in a thread.

        Raises:
            DefinitionError: they do not compile.
        """
        before, approvals = self.current, self._approvals
        after = compile_files(
            self._read(),
            self._universe,
            revision=before.catalogue.revision + 1,
            approvals=approvals,
        )
        same = after.files.same_as(before.files) and approvals == before.catalogue.approvals
        return before if same else after

    def put_in_force(self, revision: Revision) -> None:
        """Swap the one reference; what was refused before is forgotten."""
        current = self.current.catalogue
        if revision is not self.current and (
            revision.catalogue.approvals != self._approvals
            or revision.catalogue.revision <= current.revision
        ):
            # A review was decided while these files were read: that decision stays in force.
            revision = self._compile(revision.files, current.revision + 1)
        self.current = revision
        self.rejected = ()

    def reload(self) -> Plan:
        """Read the files again and put them in force, all or nothing.

        Raises:
            DefinitionError: they do not compile; the old revision stays in force, marked stale.
        """
        before = self.current
        try:
            after = self.prepare()
        except DefinitionError as error:
            self.rejected = error.problems
            raise
        self.put_in_force(after)
        return plan(before.catalogue.grants, after.catalogue.grants)

    def approve(self, approvals: frozenset[Approval]) -> Plan:
        """Put approvals of security reviews in force, as a new revision of the same files.

        The files in force are meant, and not what somebody may be writing to disk just now.
        """
        before = self.current
        self._approvals = approvals
        self.current = self._compile(before.files, before.catalogue.revision + 1)
        return plan(before.catalogue.grants, self.current.catalogue.grants)

    def _first(self, number: int, last_good: Files | None) -> Revision:
        try:
            return self._compile(self._read(), number)
        except DefinitionError as error:
            if last_good is None:
                raise
            try:
                found = self._compile(last_good, number)
            except DefinitionError:
                raise error from None
            self.rejected = error.problems
            return found

    def _compile(self, files: Files, number: int) -> Revision:
        return compile_files(files, self._universe, revision=number, approvals=self._approvals)
