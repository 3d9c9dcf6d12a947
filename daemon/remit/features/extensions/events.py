"""extension:* — modules of handlers that are loaded while the daemon runs.

Everybody sees only the extensions that discovery would show, and only events of its own grant.
"""

from typing import Annotated, Any, NoReturn

import msgspec
import structlog

from remit.errors import ConflictError, DefinitionError, HandlerError, RemitError
from remit.features.discovery.service import Discovery
from remit.features.discovery.setup import SearchOptions, configured_search
from remit.features.extensions.service import Extensions, Loaded, Restored, restore
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.dispatch.registry import event_handler, load_module
from remit.kernel.dispatch.visibility import unseen
from remit.kernel.feature import Setup, Startup
from remit.kernel.store.rows import BlobRows
from remit.model.descriptor import Descriptor
from remit.model.principal import Cause
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, bounded, page

PREFIX = "extension:"
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


@event_handler("extension:load", capability="extensions", wildcard=False)
async def load(ctx: Context, extensions: Extensions, id: Key) -> dict[str, Any]:  # noqa: A002 - as in discovery:describe
    """Load an extension: its events exist from then on, for those whose profiles grant them.

    Args:
        id: the extension, as in 'extension:giphy'; its name will do.
    """
    extension = _named(id, await _visible(ctx))
    try:
        loaded = await extensions.load(extension, _cause(ctx))
    except (DefinitionError, HandlerError) as error:
        _refuse(ctx, f"{extension.id!r} could not be loaded", error)
    return _answer(ctx, extension.id, loaded) | {"remembered": loaded.remembered}


@event_handler("extension:unload", capability="extensions", wildcard=False, only_takes=True)
async def unload(ctx: Context, extensions: Extensions, id: Key) -> dict[str, Any]:  # noqa: A002 - as above
    """Unload an extension: its events are gone, and calls that run already go on to their end.

    Args:
        id: the extension; its name will do.
    """
    seen = await _visible(ctx)
    name = id if id.startswith(PREFIX) else f"{PREFIX}{id}"
    if not (ctx.sees_everything and name in extensions.loaded):
        name = _named(id, seen).id
    try:
        unloaded = await extensions.unload(name, _cause(ctx))
    except DefinitionError as error:
        _refuse(ctx, f"{name!r} could not be unloaded: the definitions in force name it", error)
    return _answer(ctx, name, unloaded)


@event_handler("extension:list", capability="extensions", effect="read")
async def list_(
    ctx: Context, extensions: Extensions, limit: Limit = PAGE_LIMIT, after: Key = ""
) -> dict[str, Any]:
    """List the extensions that you may see, and whether they are loaded.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    seen = await _visible(ctx)
    names = set(seen)
    if ctx.sees_everything:  # also those whose entry was taken out of its file meanwhile
        names |= extensions.loaded.keys()
    described = page(
        sorted(names), lambda name: _entry(ctx, name, seen.get(name)), limit=limit, after=after
    )
    return described | {"revision": ctx.catalogue.revision}


async def _visible(ctx: Context) -> dict[str, Descriptor]:
    """The extensions that discovery shows the caller, by id."""
    engine = await ctx.kernel.service(Discovery).engine()
    view = engine.view(ctx.grant, everything=ctx.sees_everything)
    found = (view.index.descriptors[row] for row in view.rows)
    return {one.id: one for one in found if one.kind == "extension"}


def _named(id_: str, seen: dict[str, Descriptor]) -> Descriptor:
    found = seen.get(id_) or seen.get(f"{PREFIX}{id_}")
    if found is None:
        raise unseen(id_, seen, "extension", purpose="use")
    return found


def _entry(ctx: Context, id_: str, extension: Descriptor | None) -> dict[str, Any]:
    extensions = ctx.kernel.service(Extensions)
    shown: dict[str, Any] = {
        "id": id_,
        "description": extension.description if extension else "",
        "loaded": id_ in extensions.loaded,
        "loadable": id_ not in extensions.loaded and _why_not(ctx, extension) is None,
        "events": sorted(extensions.events_of(id_) & ctx.grant.events),
    }
    if ctx.sees_everything:
        module = extension.source.module if extension else extensions.loaded[id_]
        shown |= {"module": module, "refused_because": _why_not(ctx, extension)}
    return shown


def _why_not(ctx: Context, extension: Descriptor | None) -> str | None:
    if extension is None:
        return "no catalogue names it any more"
    try:
        ctx.kernel.service(Extensions).check(extension)
    except RemitError as error:
        return error.hint or error.message
    return None


def _cause(ctx: Context) -> Cause:
    return Cause("events_changed", by=ctx.principal.id, decision=ctx.decision)


def _answer(ctx: Context, id_: str, done: Loaded) -> dict[str, Any]:
    """The caller hears of the events that it may use now, or could use before."""
    authority = ctx.kernel.authority
    own = authority.grant(ctx.principal, session=ctx.session).events | ctx.grant.events
    body = {
        "id": id_,
        "events": sorted(done.events & own),
        "revision": done.outcome.revision,
        "profiles": done.outcome.plan.to_json()["profiles"] if ctx.sees_everything else {},
    }
    return bounded(body, "profiles")


def _refuse(ctx: Context, message: str, error: RemitError) -> NoReturn:
    """Tell why to those who may see files and modules; for the others the log knows."""
    problem = str(error)
    if isinstance(error, DefinitionError):
        problem = "; ".join(f"{one.place}: {one.message}" for one in error.problems[:10])
    structlog.get_logger().warning("extension_refused", problem=problem, decision=ctx.decision)
    kind = ConflictError if isinstance(error, DefinitionError) else HandlerError
    details = {"problem": problem} if ctx.sees_everything else {}
    raise kind(message, hint="the daemon's log says why", details=details) from error


async def _restore(startup: Startup) -> None:
    search = startup.take(SearchOptions, lambda: configured_search(startup.settings))
    allowed = startup.settings.extension_modules
    restored = await restore(
        BlobRows(startup.database), startup.table, search.gather, allowed, load_module
    )
    startup.put(restored)
    startup.table = restored.table


def _build(kernel: Kernel, startup: Startup) -> None:
    extensions = Extensions(
        kernel.authority,
        kernel.reloader,
        kernel.service(Discovery),
        BlobRows(kernel.database),
        load_module=load_module,
        allowed=startup.settings.extension_modules,
    )
    extensions.begin(startup.take(Restored, lambda: Restored(startup.table, {})))
    kernel.provide(extensions)


SETUP = Setup(restore=_restore, build=_build)
