"""The registry in a daemon: what was declared, how healthy each entry is, and who sees which.

What a caller sees is what discovery shows it; a declaration shows nothing to anybody. An entry that
needs something out of sight is out of sight as well: it would be useless, and would name that.
"""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import anyio
import msgspec
import structlog

from remit.config.settings.table import Settings
from remit.errors import LimitError, StoreError
from remit.features.discovery.service import Discovery
from remit.features.registry.entry import (
    UNVERIFIED,
    Declaration,
    Entry,
    HealthRecord,
    after_calls,
    declared,
    entry_of,
    marked,
    now,
)
from remit.features.registry.link import link
from remit.features.registry.resolve import (
    Candidate,
    NoTrials,
    Resolved,
    TrialCounts,
    resolve,
)
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.dispatch.visibility import grant_of
from remit.kernel.feature import Setup, Startup
from remit.kernel.store.rows import BlobRows
from remit.model.descriptor import Descriptor, tool_id
from remit.model.event import Service
from remit.policy.tool_names import held_back

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine
    from remit.features.discovery.view import View

log = structlog.get_logger()

MOST_DECLARATIONS = 20_000
MOST_HEALTH = 50_000
_BLOB = "registry"
_WRITE_SECONDS = 5.0


class Declared(msgspec.Struct, frozen=True):
    """A declaration, and who made it when."""

    declaration: Declaration
    by: str
    at: float


class SkillFlag(msgspec.Struct, frozen=True):
    """Why somebody should look at a skill again."""

    reason: str
    by: str
    at: float
    old_tool: str = ""
    new_tool: str = ""


class Kept(msgspec.Struct):
    """What outlives the daemon."""

    declarations: dict[str, Declared] = {}
    health: dict[str, HealthRecord] = {}
    flags: dict[str, SkillFlag] = {}


class EntrySet(msgspec.Struct, frozen=True, eq=False):
    """The entries that one holder may see."""

    entries: Mapping[str, Entry]
    capabilities: Mapping[str, tuple[str, ...]]
    """The ids of the tools with each capability."""
    descriptors: Mapping[str, Descriptor]

    @property
    def tools(self) -> list[Entry]:
        """The implementations, by id."""
        return [one for one in self.entries.values() if one.layer != "skill"]

    @property
    def skills(self) -> list[Entry]:
        """The skills, by id."""
        return [one for one in self.entries.values() if one.layer == "skill"]

    def named(self, name: str) -> tuple[str, ...]:
        """The tools that a capability, an event or an id names; only one if it is an id."""
        if name in self.entries and self.entries[name].layer != "skill":
            return (name,)
        return self.capabilities.get(name) or tuple({tool_id(name)} & self.entries.keys())


class Sight(msgspec.Struct, frozen=True, eq=False):
    """What one question is asked of: an engine, the view of a grant, and its entries."""

    engine: "Engine"
    view: "View"
    seen: EntrySet


class CapabilityRegistry(Service):
    """Declarations and health in memory; what changed is written at once, or within seconds."""

    def __init__(self, discovery: Discovery, rows: BlobRows, clock: Callable[[], float]) -> None:
        """Begin with nothing; `load` brings what was kept."""
        self.trials: TrialCounts = NoTrials()
        self.clock = clock
        self._discovery = discovery
        self._rows = rows
        self._kept = Kept()
        self._version = 0
        self._is_written = True
        self._sets: WeakKeyDictionary[View, tuple[int, EntrySet]] = WeakKeyDictionary()
        self._lock: anyio.Lock | None = None

    # ---- what there is ----

    async def sight(self, ctx: Context, agent: str | None = None) -> Sight:
        """What a caller, or an agent that it may ask about, may see.

        Raises:
            UnknownAgentError: there is no such agent, or it is not for the caller.
        """
        engine = await self._discovery.engine()
        grant = grant_of(ctx, agent=agent)
        everything = ctx.sees_everything and grant is ctx.grant
        if hidden := held_back(ctx.catalogue.universe, grant.exposed):
            grant = msgspec.structs.replace(grant, exposed=grant.exposed - hidden)
        view = engine.view(grant, everything=everything)
        known = self._sets.get(view)
        if known is None or known[0] != self._version:
            found = (view.index.descriptors[row] for row in view.rows)
            known = self._version, self._entries(found, everything=everything)
            self._sets[view] = known
        return Sight(engine, view, known[1])

    def _entries(self, descriptors: Iterable[Descriptor], *, everything: bool) -> EntrySet:
        found: dict[str, Entry] = {}
        described = {}
        for descriptor in descriptors:
            entry = entry_of(descriptor)
            if entry is not None:
                found[entry.id] = self._declared(entry)
                described[entry.id] = descriptor
        if not everything:
            _leave_out_what_lacks(found)
        capabilities: dict[str, list[str]] = {}
        for id_ in sorted(found):
            if found[id_].layer != "skill":
                capabilities.setdefault(found[id_].capability, []).append(id_)
        return EntrySet(
            MappingProxyType({id_: found[id_] for id_ in sorted(found)}),
            {name: tuple(ids) for name, ids in capabilities.items()},
            described,
        )

    def _declared(self, entry: Entry) -> Entry:
        known = self._kept.declarations.get(entry.id)
        return entry if known is None else declared(entry, known.declaration, by=known.by)

    async def declare(self, declarations: Iterable[Declaration], *, by: str) -> None:
        """Add to entries what cannot be read off them, all or nothing; a later one replaces.

        Raises:
            LimitError: there are too many.
            StoreError: they could not be written; then nothing was declared.
        """
        at = self.clock()
        given = {one.id: Declared(one, by, at) for one in declarations}
        async with self._changing():
            wanted = self._kept.declarations | given
            if len(wanted) > MOST_DECLARATIONS:
                message = f"{MOST_DECLARATIONS:,} entries are declared already"
                raise LimitError(message, hint="declare what exists, and nothing else")
            before, self._kept.declarations = self._kept.declarations, wanted
            try:
                await self._write()
            except BaseException:
                self._kept.declarations = before
                raise
            self._version += 1

    @property
    def declarations(self) -> Mapping[str, Declared]:
        """Everything that was declared, by id."""
        return MappingProxyType(self._kept.declarations)

    # ---- how good it is ----

    def rank(
        self,
        seen: EntrySet,
        ids: Iterable[str],
        tags: Sequence[str],
        model: str,
        *,
        explore: int = 0,
    ) -> tuple[Resolved, ...]:
        """Those of some entries that may be chosen, the best that has all that it needs first."""
        candidates = (self._candidate(seen.entries[id_], tags, model) for id_ in ids)
        found = resolve(candidates, tags, exploration=explore)
        whole = next((one for one in found if self._is_whole(seen, one.id)), None)
        if whole is None or whole is found[0]:
            return found
        return (whole, *(one for one in found if one is not whole))

    def _is_whole(self, seen: EntrySet, id_: str) -> bool:
        if not seen.entries[id_].dependencies:
            return True
        linked = link([id_], seen.entries, health=lambda one: self.health(seen.entries[one]).state)
        return bool(linked.visible)

    def _candidate(self, entry: Entry, tags: Sequence[str], model: str) -> Candidate:
        counts, id_ = self.trials, entry.id
        rates = {tag: counts.by_tag(id_, tag) for tag in tags}
        with_model = counts.by_model(id_, model) if model else None
        return Candidate(
            id=id_,
            layer=entry.layer,
            health=self.health(entry).state,
            overall=counts.score(id_),
            by_tag={tag: rate for tag, rate in rates.items() if rate.n},
            by_model=with_model if with_model is not None and with_model.n else None,
        )

    def health(self, entry: Entry) -> HealthRecord:
        """How an entry is at this moment."""
        record = self._kept.health.get(entry.id, UNVERIFIED)
        away = "" if entry.available else entry.unavailable_because or "it is not available"
        return now(record, unavailable_because=away)

    def calls_counted(self, ids: Collection[str]) -> None:
        """Judge the health of entries whose calls were counted."""
        for id_ in ids:
            record = self._kept.health.get(id_, UNVERIFIED)
            total, latest = self.trials.calls(id_)
            since = total - record.mended_after
            fresh = latest[-since:] if since > 0 else ()
            found = after_calls(record, fresh, at=self.clock())
            if found != record:
                log.info("health_changed", entry=id_, state=found.state, reason=found.reason)
                self._set_health(id_, found)

    def told(self, entry: Entry) -> dict[str, Any]:
        """An entry as callers see it."""
        rate = self.trials.score(entry.id)
        return {
            "id": entry.id,
            "capability": entry.capability,
            "layer": entry.layer,
            "name": entry.name,
            "description": entry.description,
            "tags": list(entry.tags),
            "version": entry.version,
            "rate": round(rate.rate, 4),
            "n": rate.n,
            "health": self.health(entry).to_json(),
        }

    async def mark(self, id_: str, *, is_healthy: bool, by: str, reason: str) -> HealthRecord:
        """Take the word of somebody who may say so about the health of an entry."""
        record = self._kept.health.get(id_, UNVERIFIED)
        calls = self.trials.calls(id_)[0]
        at = self.clock()
        found = marked(record, is_healthy=is_healthy, at=at, by=by, calls=calls, reason=reason)
        async with self._changing():
            self._set_health(id_, found)
            await self._write()
        return found

    def _set_health(self, id_: str, record: HealthRecord) -> None:
        if id_ not in self._kept.health and len(self._kept.health) >= MOST_HEALTH:
            self._kept.health.pop(next(iter(self._kept.health)))
        self._kept.health[id_] = record
        self._is_written = False

    # ---- what should be looked at ----

    @property
    def flags(self) -> Mapping[str, SkillFlag]:
        """The skills that somebody should look at again, by id."""
        return MappingProxyType(self._kept.flags)

    async def supersede(self, seen: EntrySet, old: str, new: str, *, by: str) -> list[str]:
        """Flag the skills that apply to a tool that another one replaces."""
        if old not in seen.entries:
            return []
        names = {old, seen.entries[old].capability}
        found = [one.id for one in seen.skills if names.intersection(one.applies_to)]
        for id_ in found:
            reason = f"{new} takes the place of {old}: does it still apply?"
            await self.flag(id_, SkillFlag(reason, by, self.clock(), old, new))
        return found

    async def flag(self, id_: str, flag: SkillFlag | None) -> None:
        """Say that a skill should be looked at again, or that somebody has; one flag a skill."""
        async with self._changing():
            self._kept.flags.pop(id_, None)
            if flag is not None:
                self._kept.flags[id_] = flag
            await self._write()

    # ---- what is kept ----

    async def load(self) -> None:
        """Begin with what was kept; what cannot be read is left where it is, and logged."""
        raw = await self._rows.blob_get(_BLOB)
        if raw is not None:
            try:
                self._kept = msgspec.json.decode(raw, type=Kept)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                log.error("registry_unreadable", problem=str(error))  # noqa: TRY400 - it is known
                await self._rows.blob_put(f"{_BLOB}-unreadable", raw)
        self._version += 1

    def _changing(self) -> anyio.Lock:
        self._lock = self._lock or anyio.Lock()
        return self._lock

    async def _write(self) -> None:
        """Write everything; health that changes meanwhile is written the next time."""
        self._is_written = True
        try:
            await self._rows.blob_put(_BLOB, msgspec.json.encode(self._kept))
        except BaseException:
            self._is_written = False
            raise

    async def keep(self) -> None:
        """Write what calls have changed, from time to time and once more when cancelled."""
        try:
            while True:
                await anyio.sleep(_WRITE_SECONDS)
                with suppress(StoreError):
                    await self._keep()
        finally:
            with anyio.move_on_after(_WRITE_SECONDS, shield=True):
                await self._keep()

    async def _keep(self) -> None:
        if not self._is_written:
            async with self._changing():
                await self._write()


def _leave_out_what_lacks(entries: dict[str, Entry]) -> None:
    """Take out all that needs, at any distance, what is not among the entries."""
    users: dict[str, list[str]] = {}
    lacking = []
    for id_, entry in entries.items():
        for needed in entry.dependencies:
            users.setdefault(needed, []).append(id_)
            if needed not in entries:
                lacking.append(id_)
    while lacking:
        id_ = lacking.pop()
        if entries.pop(id_, None) is not None:
            lacking.extend(users.get(id_, ()))


def _build(kernel: Kernel, _startup: Startup) -> None:
    discovery, rows = kernel.service(Discovery), BlobRows(kernel.database)
    kernel.provide(CapabilityRegistry(discovery, rows, kernel.wall_clock))


async def _load(kernel: Kernel) -> None:
    await kernel.service(CapabilityRegistry).load()


@asynccontextmanager
async def _run(kernel: Kernel, _settings: Settings) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kernel.service(CapabilityRegistry).keep)
        yield
        tasks.cancel_scope.cancel()


SETUP = Setup(build=_build, load=_load, run=_run)
