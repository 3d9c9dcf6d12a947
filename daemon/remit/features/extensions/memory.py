"""Which extensions may be loaded, and which were: they are loaded again at the next start."""

from collections.abc import Callable, Iterable

import anyio.to_thread
import msgspec
import structlog

from remit.errors import ConflictError, DeniedError, NotFoundError, RemitError, StoreError
from remit.features.discovery.service import Gathered
from remit.kernel.authority.revision import HandlerTable
from remit.kernel.dispatch.loading import Brought
from remit.kernel.store.protocol import BlobStore
from remit.model.descriptor import Descriptor

log = structlog.get_logger()

EXTENSIONS_BLOB = "extensions"


class Remembered(msgspec.Struct, frozen=True):
    """An extension that is to be loaded again at the next start."""

    id: str
    module: str


def check_allowed(extension: Descriptor, gathered: Gathered, allowed: frozenset[str]) -> None:
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


def entry_of(gathered: Gathered, id_: str) -> Descriptor | None:
    """What the directories say about an id; the strongest of them counts."""
    return next((one for one in gathered.descriptors if one.id == id_), None)


class Restored(msgspec.Struct, frozen=True, eq=False):
    """What an earlier run had loaded, brought in again."""

    table: HandlerTable
    brought: dict[str, Brought]
    failed: tuple[Remembered, ...] = ()


async def restore(
    store: BlobStore,
    table: HandlerTable,
    gather: Callable[[], Gathered],
    allowed: Iterable[str],
    bring_in: Callable[[str], Brought],
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
            restored = _restore_one(one, restored, bring_in)
    kept = [*restored.failed, *(Remembered(i, b.module) for i, b in restored.brought.items())]
    if len(kept) != len(remembered):
        try:
            await remember(store, kept)
        except StoreError as error:
            log.warning("extensions_not_kept", problem=error.message)
    return restored


def _is_allowed(one: Remembered, gathered: Gathered, allowed: frozenset[str]) -> bool:
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
    one: Remembered, restored: Restored, bring_in: Callable[[str], Brought]
) -> Restored:
    brought = None
    try:
        brought = bring_in(one.module)
        table = restored.table.with_source(one.id, brought.handlers)
    except RemitError as error:
        if brought is not None:
            brought.forget()
        log.error(  # noqa: TRY400 - no traceback: the message says it all
            "extension_not_loaded", extension=one.id, problem=error.message, hint=error.hint
        )
        return msgspec.structs.replace(restored, failed=(*restored.failed, one))
    return Restored(table, {**restored.brought, one.id: brought}, restored.failed)


async def remember(store: BlobStore, loaded: Iterable[Remembered]) -> None:
    """Write down what is to be loaded at the next start.

    Raises:
        StoreError: it cannot be written.
    """
    await store.blob_put(EXTENSIONS_BLOB, msgspec.msgpack.encode(list(loaded)))


async def _recall(store: BlobStore) -> list[Remembered]:
    raw = await store.blob_get(EXTENSIONS_BLOB)
    if raw is None:
        return []
    try:
        return msgspec.msgpack.decode(raw, type=list[Remembered])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        log.warning("kept_extensions_damaged", problem=str(error))
        return []
