"""The revision in force, and the grants that follow from it.

One reference is swapped on reload, so every decision comes from one whole revision: its definitions
and the handlers they were compiled against. A configuration that does not compile changes nothing:
the last good one stays in force and is marked stale.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec

from remit.config.definitions.files import Files, parse_definitions
from remit.errors import ConflictError, DefinitionError, Problem
from remit.kernel.authority.fleet import NOTHING, Fleet
from remit.model.capability import RuntimeCapability
from remit.model.event import EventSpec, TakenEventError, Universe, make_universe
from remit.model.grant import Grant
from remit.model.principal import Principal
from remit.policy.catalogue import Approval, Catalogue, Definitions
from remit.policy.compile import compile_definitions
from remit.policy.resolve import grant_everything

MAX_EVENTS = 10_000
"""Of all sources together: every one of them costs each profile time when it is compiled."""


class HandlerTable(msgspec.Struct, frozen=True, eq=False):
    """Handlers by event."""

    by_event: Mapping[str, Any] = {}
    """`Handler`s. What runs them knows that; here only what they say about themselves counts."""
    sources: Mapping[str, frozenset[str]] = {}
    """The events of each source that came at run time, by the id of the source."""

    @property
    def specs(self) -> list[EventSpec]:
        """What is known about each event."""
        return [handler.spec for handler in self.by_event.values()]

    def events_of(self, source: str) -> frozenset[str]:
        """The events that a source brought; none when it is not here."""
        return self.sources.get(source, frozenset())

    def with_source(self, source: str, handlers: Mapping[str, Any]) -> Self:
        """The table with exactly these events of a source, whatever it had before.

        Raises:
            ConflictError: there would be too many.
            HandlerError: a name or an old name is somebody else's.
        """
        rest = self.without_source(source)
        taken = _names(rest.by_event)
        for name, handler in _names(handlers).items():
            if name in taken:
                raise TakenEventError(name, taken[name].spec.place, handler.spec.place)
        if sum(map(len, rest.sources.values())) + len(handlers) > MAX_EVENTS:
            message = f"more than {MAX_EVENTS:,} events would have come at run time"
            raise ConflictError(message, hint="take some of them away first")
        return type(self)(
            {**rest.by_event, **handlers}, {**rest.sources, source: frozenset(handlers)}
        )

    def without_source(self, source: str) -> Self:
        """The table without the events of a source."""
        gone = self.sources.get(source)
        if gone is None:
            return self
        return type(self)(
            {name: handler for name, handler in self.by_event.items() if name not in gone},
            {name: events for name, events in self.sources.items() if name != source},
        )


def _names(handlers: Mapping[str, Any]) -> dict[str, Any]:
    """Every name that is taken, old ones included."""
    return {
        name: handler
        for event, handler in handlers.items()
        for name in (event, *handler.spec.aliases)
    }


class Revision(msgspec.Struct, frozen=True, eq=False):
    """A compiled catalogue, what it was compiled from, and the operator's grant in it."""

    catalogue: Catalogue
    files: Files
    everything: Grant
    table: HandlerTable = HandlerTable()
    made: tuple[RuntimeCapability, ...] = ()
    """The capabilities that were made at run time."""


def _as_written(definitions: Definitions) -> Definitions:
    return definitions


def compile_files(  # noqa: PLR0913 - what a revision is made of
    files: Files,
    universe: Universe,
    *,
    revision: int = 1,
    approvals: frozenset[Approval] = frozenset(),
    table: HandlerTable | None = None,
    made: tuple[RuntimeCapability, ...] = (),
    revise: Callable[[Definitions], Definitions] = _as_written,
) -> Revision:
    """Compile a set of files; the table is that of the universe.

    `revise` may change what was read before it is compiled.

    Raises:
        DefinitionError: they do not compile; every problem carries the line it stands on.
    """
    try:
        definitions = msgspec.structs.replace(
            revise(parse_definitions(files)), runtime_capabilities=made
        )
        catalogue = compile_definitions(
            definitions, universe, revision=revision, approvals=approvals
        )
    except DefinitionError as error:
        raise DefinitionError(files.illustrate(error.problems)) from None
    shown = files.illustrate(catalogue.warnings)
    catalogue = msgspec.structs.replace(catalogue, warnings=shown)
    return Revision(catalogue, files, grant_everything(catalogue), table or HandlerTable(), made)


def altered_tools(before: Revision, after: Revision) -> frozenset[str]:
    """The events of both revisions that tool lists describe otherwise."""
    if before.table is after.table:
        return frozenset()
    was, now = before.table.by_event, after.table.by_event
    return frozenset(
        event
        for event in was.keys() & now.keys()
        if was[event] is not now[event] and was[event].tool_parts != now[event].tool_parts
    )


class Authority:
    """Answers who holds what, now."""

    def __init__(  # noqa: PLR0913 - one for each thing that outlives a run
        self,
        table: HandlerTable,
        read: Callable[[], Files],
        *,
        fleet: Fleet | None = None,
        approvals: frozenset[Approval] = frozenset(),
        revision: int = 1,
        last_good: Files | None = None,
        made: tuple[RuntimeCapability, ...] = (),
    ) -> None:
        """Compile the first revision.

        Args:
            table: the handlers there are.
            read: reads the definition files again each time.
            fleet: the living agents.
            approvals: the security reviews that were approved.
            revision: the number to begin with.
            last_good: what was in force before; it is used, marked stale, when the files that are
                read do not compile.
            made: the capabilities that were made at run time.

        Raises:
            DefinitionError: the definitions do not compile.
        """
        self.fleet = fleet or Fleet()
        self._read = read
        self._approvals = approvals
        self.rejected: tuple[Problem, ...] = ()
        self.current = self._first(table, revision, last_good, made)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue in force."""
        return self.current.catalogue

    @property
    def is_stale(self) -> bool:
        """Tell whether newer files were refused."""
        return bool(self.rejected)

    def grant(self, principal: Principal, *, session: str | None = None) -> Grant:
        """What a principal holds in the present revision; one that does not live holds nothing.

        With a session: what it holds in requests that name it.
        """
        current = self.current
        if principal.kind == "operator":
            grant = current.everything
        elif not self.fleet.lives(principal):
            return NOTHING  # also when somebody else has the name by now
        else:
            grant = self.fleet.grant(principal.id, current.catalogue)
        if session is None:
            return grant
        return self.fleet.in_session(principal.id, session, grant, current.catalogue)

    def prepare(self) -> Revision:
        """Read and compile the files as the next revision; the present one when nothing changed.

        Nothing is put in force, so this may run in a thread.

        Raises:
            DefinitionError: they do not compile.
        """
        before, approvals = self.current, self._approvals
        after = compile_files(
            self._read(),
            before.catalogue.universe,
            revision=before.catalogue.revision + 1,
            approvals=approvals,
            table=before.table,
            made=before.made,
        )
        same = after.files.same_as(before.files) and approvals == before.catalogue.approvals
        return before if same else after

    def prepare_events(self, table: HandlerTable) -> Revision:
        """Compile the files in force against other events, as the next revision.

        Nothing is put in force, so this may run in a thread.

        Raises:
            DefinitionError: they do not compile, as when a denial would deny nothing any more.
        """
        before = self.current
        return compile_files(
            before.files,
            make_universe(table.specs),
            revision=before.catalogue.revision + 1,
            approvals=self._approvals,
            table=table,
            made=before.made,
        )

    def prepare_made(self, made: tuple[RuntimeCapability, ...]) -> Revision:
        """Compile the files in force beside other capabilities made at run time.

        Nothing is put in force, so this may run in a thread.

        Raises:
            DefinitionError: they do not compile, as when a profile names one that is gone.
        """
        before = self.current
        return compile_files(
            before.files,
            before.catalogue.universe,
            revision=before.catalogue.revision + 1,
            approvals=self._approvals,
            table=before.table,
            made=made,
        )

    def put_in_force(self, revision: Revision) -> None:
        """Swap the one reference; files that were read well make earlier problems forgotten.

        Other events must have been prepared from the revision that is in force.
        """
        number = self.current.catalogue.revision
        if revision is not self.current and (
            revision.catalogue.approvals != self._approvals or revision.catalogue.revision <= number
        ):
            # A review was decided while these files were read, or events came or went: that stays.
            revision = self._compile(revision.files)
        current = self.current
        if revision.table is current.table and revision.made is current.made:
            self.rejected = ()  # anything else says nothing of the files on disk
        self.current = revision

    def approve(self, approvals: frozenset[Approval]) -> None:
        """Put approvals of security reviews in force, as a new revision of the same files.

        The files in force are meant, and not what somebody may be writing to disk just now.
        """
        self._approvals = approvals
        self.current = self._compile(self.current.files)

    def _first(
        self,
        table: HandlerTable,
        number: int,
        last_good: Files | None,
        made: tuple[RuntimeCapability, ...],
    ) -> Revision:
        universe = make_universe(table.specs)

        def compiled(files: Files) -> Revision:
            return compile_files(
                files, universe, revision=number, approvals=self._approvals, table=table, made=made
            )

        try:
            return compiled(self._read())
        except DefinitionError as error:
            if last_good is None:
                raise
            try:
                found = compiled(last_good)
            except DefinitionError:
                raise error from None
            self.rejected = error.problems
            return found

    def _compile(self, files: Files) -> Revision:
        """The next revision, with the events that are in force."""
        catalogue = self.current.catalogue
        return compile_files(
            files,
            catalogue.universe,
            revision=catalogue.revision + 1,
            approvals=self._approvals,
            table=self.current.table,
            made=self.current.made,
        )
