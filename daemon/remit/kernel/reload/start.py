"""Starting with a configuration: what is on disk, or else what was last in force."""

from collections.abc import Callable

import msgspec
import structlog

from remit.config.definitions.files import Files
from remit.errors import RemitError
from remit.kernel.authority.plans import plan_between
from remit.kernel.authority.revision import Authority, HandlerTable, compile_files
from remit.kernel.reload.last_good import Kept, keep, recall
from remit.kernel.reload.reload import Outcome
from remit.kernel.store.rows import BlobRows
from remit.model.capability import RuntimeCapability
from remit.model.event import EventSpec, make_universe
from remit.model.names import EventName
from remit.policy.catalogue import Approval
from remit.policy.plan import plan

log = structlog.get_logger()


async def open_authority(
    table: HandlerTable,
    read: Callable[[], Files],
    store: BlobRows,
    *,
    approvals: frozenset[Approval] = frozenset(),
    made: tuple[RuntimeCapability, ...] = (),
    kept: Kept | None = None,
) -> tuple[Authority, Outcome | None]:
    """Compile the first revision of this run, and tell how it differs from the last run's.

    Files that do not compile are passed over for the last good ones, marked stale. The number of
    the revision stays when nothing changed, and else goes on from the last run's.

    Raises:
        DefinitionError: the files do not compile, and there are no last good ones.
    """
    kept = kept or await recall(store)

    def compiled(number: int) -> Authority:
        return Authority(
            table, read, approvals=approvals, revision=number, last_good=kept.files, made=made
        )

    authority = compiled(max(kept.revision, 1))
    outcome = None
    if kept.revision and not _is_same(kept, authority):
        authority = compiled(kept.revision + 1)
        outcome = _difference(kept, authority)
    if authority.is_stale:
        problems = [problem.to_json() for problem in authority.rejected]
        log.warning("config_rejected", revision=authority.catalogue.revision, problems=problems)
    if outcome or not kept.revision:
        await keep(store, authority.current)
    return authority, outcome


def _is_same(kept: Kept, authority: Authority) -> bool:
    """Tell whether this run begins with what the last one ended with."""
    if kept.files is None or kept.grants is None:
        return False
    catalogue = authority.catalogue
    return (
        kept.files.same_as(authority.current.files)
        and kept.names == catalogue.universe.names
        and not plan(kept.grants, catalogue.grants).changes
    )


def _difference(kept: Kept, authority: Authority) -> Outcome:
    """What anybody holds more or less than in the last run: never a silent widening."""
    catalogue = authority.catalogue
    before = catalogue.grants if kept.grants is None else kept.grants
    return Outcome(changed=True, revision=catalogue.revision, plan=plan(before, catalogue.grants))


def with_agents(difference: Outcome, kept: Kept, authority: Authority) -> Outcome:
    """The difference to the last run, with what changes for the agents that live on.

    What they held then is computed from the files and the events of that time.
    """
    if kept.files is None:
        return difference
    current = authority.current
    there = [spec for spec in current.table.specs if spec.name in kept.names]
    known = {spec.name for spec in there}
    gone = [EventSpec(name=EventName(name)) for name in kept.names if name not in known]
    try:
        then = compile_files(
            kept.files,
            make_universe([*there, *gone]),
            revision=kept.revision,
            approvals=current.catalogue.approvals,
            made=current.made,
        ).catalogue
    except RemitError as error:  # the profiles of that time are compared all the same
        log.warning("last_files_not_compiled", problem=str(error))
        return difference
    found = plan_between(authority.fleet, then, current.catalogue).agent_changes
    changed = msgspec.structs.replace(difference.plan, agent_changes=found)
    return msgspec.structs.replace(difference, plan=changed)
