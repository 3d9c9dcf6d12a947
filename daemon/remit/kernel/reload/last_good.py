"""The start of a daemon, and what outlives it: the last good files, and who held what.

The files are used when those on disk do not compile at the next start. The grants show, at the next
start, what widened while nobody looked: edited files, or a new handler under a granted wildcard.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
import structlog

from remit.config.definitions.files import Files
from remit.errors import Place, RemitError
from remit.kernel.authority.plans import plan_between
from remit.kernel.authority.revision import Authority, HandlerTable, Revision, compile_files
from remit.kernel.authority.standing import LAST_GOOD, LastGood
from remit.kernel.reload.full_reload import Outcome
from remit.kernel.store.rows import BlobRows
from remit.model.capability import RuntimeCapability
from remit.model.event import EventSpec, make_universe
from remit.model.grant import Grant
from remit.model.launch import Launch, PlacedLaunch
from remit.model.limits import Effect, Exposure, Limits
from remit.model.names import EventName
from remit.policy.catalogue import Approval, Catalogue
from remit.policy.plan import plan

log = structlog.get_logger()

GRANTS_BLOB = "last_grants"
_KEPT = Place("kept")

Part = TypeVar("Part")


class _StoredGrant(msgspec.Struct, frozen=True, array_like=True):
    bits: bytes
    claude_tools: list[str]
    limits: Limits
    approval: bytes = b""
    denied: bytes = b""
    denied_tools: list[str] = []
    pending: list[str] = []
    exposed: bytes = b""
    exposure: Exposure = "all"
    pinned: bytes = b""
    launch: Launch | None = None
    max_effect: Effect | None = None
    trusted: bool = False


class _StoredGrants(msgspec.Struct, frozen=True):
    """Grants as bits over one list of names: thousands of profiles stay small."""

    revision: int
    names: list[str]
    profiles: dict[str, _StoredGrant]


class LastRun(msgspec.Struct, frozen=True, eq=False):
    """The stored state of an earlier run; a part that is missing or damaged is None."""

    revision: int = 0
    files: Files | None = None
    names: tuple[str, ...] = ()
    grants: Mapping[str, Grant] | None = None


async def keep(store: BlobRows, revision: Revision) -> bool:
    """Keep a revision for the next start; tells whether that worked. It is in force either way."""
    catalogue = revision.catalogue
    files = msgspec.structs.replace(revision.files, kept=True)
    grants = {name: _kept(catalogue, grant) for name, grant in catalogue.grants.items()}
    parts = (
        (LAST_GOOD, LastGood(catalogue.revision, files)),
        (GRANTS_BLOB, _StoredGrants(catalogue.revision, list(catalogue.universe.names), grants)),
    )
    worked = True
    for name, part in parts:
        try:
            await store.blob_put(name, msgspec.msgpack.encode(part))
        except RemitError as error:
            # A narrowing edit must not wait for space on a disk.
            log.warning("config_not_kept", part=name, problem=str(error))
            worked = False
    return worked


def _kept(catalogue: Catalogue, grant: Grant) -> _StoredGrant:
    universe = catalogue.universe

    def packed(bits: int) -> bytes:
        return bits.to_bytes((bits.bit_length() + 7) // 8)

    return _StoredGrant(
        packed(grant.bits),
        sorted(grant.claude_tools),
        grant.limits,
        packed(universe.bits_of(grant.approval_required)),
        packed(universe.bits_of(grant.denied_events)),
        sorted(grant.denied_tools),
        list(grant.pending_review),
        packed(universe.bits_of(grant.exposed)),
        grant.exposure,
        packed(universe.bits_of(grant.pinned)),
        grant.launcher.launch if grant.launcher else None,
        grant.max_effect,
        grant.trusted,
    )


async def recall(store: BlobRows) -> LastRun:
    """What was kept; what cannot be read counts as absent."""
    files = await _read(store, LAST_GOOD, LastGood)
    grants = await _read(store, GRANTS_BLOB, _StoredGrants)
    revision = max(files.revision if files else 0, grants.revision if grants else 0)
    return LastRun(
        revision,
        files.files if files else None,
        tuple(grants.names) if grants else (),
        _grants_of(grants) if grants else None,
    )


async def _read(store: BlobRows, name: str, kind: type[Part]) -> Part | None:
    raw = await store.blob_get(name)
    if raw is None:
        return None
    try:
        return msgspec.msgpack.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        log.warning("kept_config_damaged", part=name, problem=str(error))
        return None


def _grants_of(kept: _StoredGrants) -> dict[str, Grant]:
    def names_in(packed: bytes) -> list[str]:
        bits = int.from_bytes(packed)
        return [name for at, name in enumerate(kept.names) if bits >> at & 1]

    return {
        profile: Grant(
            profile=profile,
            revision=kept.revision,
            bits=int.from_bytes(one.bits),
            events=frozenset(names_in(one.bits)),
            claude_tools=frozenset(one.claude_tools),
            limits=one.limits,
            approval_required=frozenset(names_in(one.approval)),
            denied_events=tuple(names_in(one.denied)),
            denied_tools=frozenset(one.denied_tools),
            pending_review=tuple(one.pending),
            exposed=frozenset(names_in(one.exposed)),
            exposure=one.exposure,
            pinned=frozenset(names_in(one.pinned)),
            launcher=PlacedLaunch(one.launch, _KEPT) if one.launch else None,
            max_effect=one.max_effect,
            trusted=one.trusted,
        )
        for profile, one in kept.profiles.items()
    }


async def open_authority(
    table: HandlerTable,
    read: Callable[[], Files],
    store: BlobRows,
    *,
    approvals: frozenset[Approval] = frozenset(),
    made: tuple[RuntimeCapability, ...] = (),
    kept: LastRun | None = None,
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


def _is_same(kept: LastRun, authority: Authority) -> bool:
    """Tell whether this run begins with what the last one ended with."""
    if kept.files is None or kept.grants is None:
        return False
    catalogue = authority.catalogue
    return (
        kept.files.same_as(authority.current.files)
        and kept.names == catalogue.universe.names
        and not plan(kept.grants, catalogue.grants).changes
    )


def _difference(kept: LastRun, authority: Authority) -> Outcome:
    """What anybody holds more or less than in the last run: never a silent widening."""
    catalogue = authority.catalogue
    before = catalogue.grants if kept.grants is None else kept.grants
    return Outcome(changed=True, revision=catalogue.revision, plan=plan(before, catalogue.grants))


def with_agents(difference: Outcome, kept: LastRun, authority: Authority) -> Outcome:
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
