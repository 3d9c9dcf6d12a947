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
from remit.policy.catalogue import Catalogue
from remit.policy.compiler import compile_definitions
from remit.policy.plan import Plan, plan
from remit.policy.resolve import grant_everything
from remit.policy.universe import Universe, make_universe

_NOTHING = Grant(profile="", revision=0, bits=0, events=frozenset())


class Revision(msgspec.Struct, frozen=True, eq=False):
    """A compiled catalogue, the files it came from, and the operator's grant in it."""

    catalogue: Catalogue
    files: Files
    everything: Grant

    def grant(self, principal: Principal) -> Grant:
        """What a principal holds in this revision; a profile that vanished gives nothing."""
        if principal.kind == "operator":
            return self.everything
        return self.catalogue.grants.get(principal.profile, _NOTHING)


def compile_files(files: Files, universe: Universe, *, revision: int = 1) -> Revision:
    """Compile a set of files.

    Raises:
        DefinitionError: they do not compile; every problem carries the line it stands on.
    """
    try:
        catalogue = compile_definitions(parse_definitions(files), universe, revision=revision)
    except DefinitionError as error:
        raise DefinitionError(files.illustrate(error.problems)) from None
    shown = files.illustrate(catalogue.warnings)
    catalogue = msgspec.structs.replace(catalogue, warnings=shown)
    return Revision(catalogue, files, grant_everything(catalogue))


class Authority:
    """Answers who holds what, now."""

    def __init__(self, events: Iterable[EventSpec], read: Callable[[], Files]) -> None:
        """Compile the first revision.

        Args:
            events: the events that have handlers.
            read: reads the definition files again each time.

        Raises:
            DefinitionError: the definitions do not compile.
        """
        self._universe = make_universe(events)
        self._read = read
        self.current = compile_files(read(), self._universe)
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
        """What a principal holds in the present revision."""
        return self.current.grant(principal)

    def reload(self) -> Plan:
        """Read the files again and put them in force, all or nothing.

        Raises:
            DefinitionError: they do not compile; the old revision stays in force, marked stale.
        """
        before = self.current
        number = before.catalogue.revision + 1
        try:
            after = compile_files(self._read(), self._universe, revision=number)
        except DefinitionError as error:
            self.rejected = error.problems
            raise
        self.current = after
        self.rejected = ()
        return plan(before.catalogue.grants, after.catalogue.grants)
