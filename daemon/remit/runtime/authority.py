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
from remit.runtime.fleet import Fleet


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
    ) -> None:
        """Compile the first revision.

        Args:
            events: the events that have handlers.
            read: reads the definition files again each time.
            fleet: the living agents.
            approvals: the security reviews that were approved.

        Raises:
            DefinitionError: the definitions do not compile.
        """
        self.fleet = fleet or Fleet()
        self._universe = make_universe(events)
        self._read = read
        self._approvals = approvals
        self.current = self._compile(1)
        self.rejected: tuple[Problem, ...] = ()

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
        return self.fleet.grant(principal.id, current.catalogue)

    def reload(self) -> Plan:
        """Read the files again and put them in force, all or nothing.

        Raises:
            DefinitionError: they do not compile; the old revision stays in force, marked stale.
        """
        before = self.current
        number = before.catalogue.revision + 1
        try:
            after = self._compile(number)
        except DefinitionError as error:
            self.rejected = error.problems
            raise
        self.current = after
        self.rejected = ()
        return plan(before.catalogue.grants, after.catalogue.grants)

    def approve(self, approvals: frozenset[Approval]) -> Plan:
        """Put approvals of security reviews in force, as a new revision of the same files.

        Raises:
            DefinitionError: the files on disk do not compile now.
        """
        before, self._approvals = self._approvals, approvals
        try:
            return self.reload()
        except DefinitionError:
            self._approvals = before
            raise

    def _compile(self, number: int) -> Revision:
        return compile_files(
            self._read(), self._universe, revision=number, approvals=self._approvals
        )
