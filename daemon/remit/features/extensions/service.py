"""Extensions: modules of handlers that are loaded and unloaded while the daemon runs.

Loading is running somebody's code inside the daemon, so two things of the operator's must name it:
the setting `extension_modules`, and a catalogue in a directory that the operator chose. A workspace
may be a repository that somebody cloned, so what stands there is found, but never loaded. What was
loaded is written down, and loaded again at the next start.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec
import structlog

from remit.errors import (
    ConflictError,
    DeniedError,
    HandlerError,
    NotFoundError,
    RemitError,
    StoreError,
)
from remit.kernel.authority.revision import Authority, HandlerTable
from remit.kernel.dispatch.registry import LoadedModule
from remit.kernel.reload.full_reload import Outcome
from remit.kernel.reload.reload import Reloader
from remit.kernel.store.rows import BlobRows
from remit.model.descriptor import Descriptor
from remit.model.event import Service
from remit.model.principal import Cause

if TYPE_CHECKING:
    from remit.features.discovery.service import Discovery, Gathered

log = structlog.get_logger()
EXTENSIONS_BLOB = "extensions"
IMPORT_SECONDS = 20.0


class Remembered(msgspec.Struct, frozen=True):
    """An extension that is to be loaded again at the next start."""

    id: str
    module: str


def check_allowed(extension: Descriptor, gathered: "Gathered", allowed: frozenset[str]) -> None:
    """Refuse what the operator did not allow.

    Raises:
        ConflictError: there is nothing to load.
        DeniedError: the operator's settings do not allow it.
    """
    if not extension.source.module:
        hint = "its entry in extensions.yaml names no module"
        raise ConflictError(f"{extension.id!r} has nothing to load", hint=hint)
    message = f"the operator does not allow to load {extension.id!r}"
    if extension.id in gathered.workspace:
        hint = "it stands in the workspace: an operator lists that folder in capability_dirs"
        raise DeniedError(message, reason="no_grant", hint=hint)
    if extension.source.module not in allowed:
        hint = "an operator lists its module in the setting extension_modules"
        raise DeniedError(message, reason="no_grant", hint=hint)


def entry_of(gathered: "Gathered", id_: str) -> Descriptor | None:
    """What the directories say about an id; the strongest of them counts."""
    return next((one for one in gathered.descriptors if one.id == id_), None)


class Restored(msgspec.Struct, frozen=True, eq=False):
    """The extensions of an earlier run, loaded again."""

    table: HandlerTable
    brought: dict[str, LoadedModule]
    failed: tuple[Remembered, ...] = ()


async def restore(
    store: BlobRows,
    table: HandlerTable,
    gather: "Callable[[], Gathered]",
    allowed: Iterable[str],
    load_module: Callable[[str], LoadedModule],
) -> Restored:
    """Load again what was loaded, before anything is served, if it is still allowed.

    What is no longer allowed is forgotten. What cannot be imported is reported at every start.
    """
    remembered = await _recall(store)
    restored = Restored(table, {})
    if not remembered:
        return restored
    gathered = await anyio.to_thread.run_sync(gather)
    listed = frozenset(allowed)
    for one in remembered:
        if _is_allowed(one, gathered, listed):
            restored = _restore_one(one, restored, load_module)
    kept = [*restored.failed, *(Remembered(i, b.module) for i, b in restored.brought.items())]
    if len(kept) != len(remembered):
        try:
            await remember(store, kept)
        except StoreError as error:
            log.warning("extensions_not_kept", problem=error.message)
    return restored


def _is_allowed(one: Remembered, gathered: "Gathered", allowed: frozenset[str]) -> bool:
    try:
        entry = entry_of(gathered, one.id)
        if entry is None or entry.source.module != one.module:
            raise NotFoundError(f"no catalogue names {one.module} as {one.id!r} any more")
        check_allowed(entry, gathered, allowed)
    except RemitError as error:
        log.warning("extension_forgotten", extension=one.id, problem=error.message, hint=error.hint)
        return False
    return True


def _restore_one(
    one: Remembered, restored: Restored, load_module: Callable[[str], LoadedModule]
) -> Restored:
    brought = None
    try:
        brought = load_module(one.module)
        table = restored.table.with_source(one.id, brought.handlers)
    except RemitError as error:
        if brought is not None:
            brought.forget()
        log.error(  # noqa: TRY400 - no traceback: the message says it all
            "extension_not_loaded", extension=one.id, problem=error.message, hint=error.hint
        )
        return msgspec.structs.replace(restored, failed=(*restored.failed, one))
    return Restored(table, {**restored.brought, one.id: brought}, restored.failed)


async def remember(store: BlobRows, loaded: Iterable[Remembered]) -> None:
    """Write down what is to be loaded at the next start.

    Raises:
        StoreError: it cannot be written.
    """
    await store.blob_put(EXTENSIONS_BLOB, msgspec.msgpack.encode(list(loaded)))


async def _recall(store: BlobRows) -> list[Remembered]:
    raw = await store.blob_get(EXTENSIONS_BLOB)
    if raw is None:
        return []
    try:
        return msgspec.msgpack.decode(raw, type=list[Remembered])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        log.warning("kept_extensions_damaged", problem=str(error))
        return []


class Loaded(msgspec.Struct, frozen=True):
    """The outcome of a load or an unload."""

    outcome: Outcome
    events: frozenset[str]
    remembered: bool


class Extensions(Service):
    """Loads and unloads, one after the other."""

    def __init__(
        self,
        authority: Authority,
        reloader: Reloader,
        discovery: "Discovery",
        store: BlobRows,
        *,
        load_module: Callable[[str], LoadedModule],
        allowed: Iterable[str] = (),
    ) -> None:
        self._authority = authority
        self._reloader = reloader
        self._discovery = discovery
        self._store = store
        self._bring_in = load_module
        self._allowed = frozenset(allowed)
        self._brought: dict[str, LoadedModule] = {}
        self._waiting: dict[str, Remembered] = {}
        """Remembered ones that could not be loaded at the start; they may be mended."""
        self._importing: set[str] = set()
        self._lock = anyio.Lock()
        self.on_change: Callable[[list[str]], None] | None = None
        """Told the modules that are loaded after each change."""

    def begin(self, restored: Restored) -> None:
        """Take over what was loaded before the first revision."""
        self._brought = dict(restored.brought)
        self._waiting = {one.id: one for one in restored.failed}

    @property
    def loaded(self) -> dict[str, str]:
        """The module of each extension that is loaded."""
        return {id_: brought.module for id_, brought in sorted(self._brought.items())}

    def events_of(self, id_: str) -> frozenset[str]:
        """The events that an extension brought; none when it is not loaded."""
        return self._authority.current.table.events_of(id_) if id_ in self._brought else frozenset()

    def check(self, extension: Descriptor) -> None:
        """Refuse what the operator did not allow to be loaded.

        Raises:
            ConflictError: there is nothing to load, or it changes just now.
            DeniedError: the operator's settings do not allow it.
        """
        present = entry_of(self._discovery.gathered, extension.id)
        if present is None or present.source != extension.source:
            raise ConflictError(f"{extension.id!r} has just changed", hint="look at it again")
        check_allowed(present, self._discovery.gathered, self._allowed)

    async def load(self, extension: Descriptor, cause: Cause) -> Loaded:
        """Import the module of an extension and put its events in force, all or nothing.

        Raises:
            ConflictError: it is loaded already, or its module is in use.
            DefinitionError: the definitions in force do not compile with its events.
            DeniedError: the operator's settings do not allow it.
            HandlerError: the module cannot be imported, or has somebody else's events.
            StoreError: somebody would get more, and that cannot be written down.
        """
        async with self._lock:
            if extension.id in self._brought:
                raise ConflictError(f"{extension.id!r} is loaded already")
            self.check(extension)
            brought = await self._import(extension.source.module)
            with anyio.CancelScope(shield=True):  # it is loaded and remembered, or neither
                try:
                    outcome = await self._reloader.change_events(
                        lambda table: table.with_source(extension.id, brought.handlers), cause
                    )
                except BaseException:
                    brought.forget()
                    raise
                self._brought[extension.id] = brought
                self._waiting.pop(extension.id, None)
                remembered = await self._remembered()
            self._changed()
            return Loaded(outcome, frozenset(brought.handlers), remembered)

    async def unload(self, id_: str, cause: Cause) -> Loaded:
        """Take the events of an extension away; calls that run already go on to their end.

        Raises:
            DefinitionError: the definitions in force do not compile without its events.
            NotFoundError: it is not loaded.
            StoreError: it is unloaded, and would come back at the next start.
        """
        async with self._lock:
            brought = self._brought.get(id_)
            if brought is None and id_ not in self._waiting:
                raise NotFoundError(f"{id_!r} is not loaded")
            with anyio.CancelScope(shield=True):
                outcome = await self._reloader.change_events(
                    lambda table: table.without_source(id_), cause
                )
                self._waiting.pop(id_, None)
                if brought is not None:
                    del self._brought[id_]
                    brought.forget()
                self._changed()
                await self._remember()  # last: a full disk keeps no right alive
            events = frozenset(brought.handlers) if brought else frozenset[str]()
            return Loaded(outcome, events, remembered=False)

    async def _import(self, module: str) -> LoadedModule:
        if module in self._importing:
            message = "its module is still being imported"
            raise ConflictError(message, hint="when it never ends: restart the daemon")
        attempt = _Attempt(module, self._bring_in, self._importing)
        try:
            with anyio.fail_after(IMPORT_SECONDS):
                return await anyio.to_thread.run_sync(attempt.run, abandon_on_cancel=True)
        except TimeoutError as error:
            attempt.give_up()
            message = f"importing {module} took over {IMPORT_SECONDS:g} s"
            raise HandlerError(message, hint="importing a module should do nothing else") from error
        except BaseException:
            attempt.give_up()
            raise

    async def _remember(self) -> None:
        found = {id_: Remembered(id_, module) for id_, module in self.loaded.items()}
        await remember(self._store, (self._waiting | found).values())

    async def _remembered(self) -> bool:
        """Remember what is loaded now; tells whether that worked. It is loaded either way."""
        try:
            await self._remember()
        except StoreError as error:
            log.warning("extensions_not_kept", problem=error.message)
            return False
        return True

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change(list(self.loaded.values()))


class _Attempt:
    """One import in a thread. Nobody can stop it; what comes too late is dropped."""

    def __init__(
        self, module: str, load_module: Callable[[str], LoadedModule], importing: set[str]
    ) -> None:
        self._module = module
        self._bring_in = load_module
        self._importing = importing
        self._result: LoadedModule | None = None
        self._is_over = False

    def run(self) -> LoadedModule:
        """Import, in the thread."""
        self._importing.add(self._module)
        try:
            self._result = self._bring_in(self._module)
            if self._is_over:  # each side looks after it has written: one of them sees the other
                self._result.forget()
            return self._result
        finally:
            self._importing.discard(self._module)

    def give_up(self) -> None:
        """Drop the result, whether it is there or still to come."""
        self._is_over = True
        if self._result is not None:
            self._result.forget()
