"""state:* — JSON values that agents share and that survive a restart."""

from typing import Annotated, Any

import msgspec

from remit.errors import DeniedError, NotFoundError, TooLargeError
from remit.features.state.store import StateEntry, StatePage, StateQuota, StateRows
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.feature import Setup, Startup
from remit.kernel.store.rows import PAGE_BYTES
from remit.model.event import Service
from remit.model.limits import Limits, shared_prefixes
from remit.model.schema import PAGE_LIMIT, PAGE_MAX

KEY_LIMIT = 512

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_LIMIT)]
Prefix = Annotated[str, msgspec.Meta(max_length=KEY_LIMIT)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
Version = Annotated[int, msgspec.Meta(ge=0)]


class StateLimits(Service, msgspec.Struct, frozen=True):
    """Limits of the shared state, as the settings say."""

    value_bytes: int = 262_144
    """The size of one value."""
    quota: StateQuota = StateQuota()
    """All that one caller may have."""


@event_handler("state:get", capability="state_read", effect="read")
async def get(ctx: Context, rows: StateRows, key: Key) -> dict[str, Any]:
    """Read one value of the shared state.

    Args:
        key: its name, as in 'team/plan'.
    """
    _check_key(ctx, key)
    entry = await rows.state_get(key)
    if entry is None:
        may_look = "state:list" in ctx.grant.events
        hint = "state:list shows what there is" if may_look else ""
        raise NotFoundError(f"there is no state under {key!r}", hint=hint)
    return msgspec.structs.asdict(entry)


@event_handler("state:list", capability="state_read", effect="read")
async def list_(
    ctx: Context,
    rows: StateRows,
    prefix: Prefix = "",
    limit: Limit = PAGE_LIMIT,
    after: Prefix = "",
) -> dict[str, Any]:
    """List the shared state by key, a page at a time.

    Args:
        prefix: only keys that start with it.
        limit: how many at the most.
        after: the `next` of the page before.
    """
    allowed = ctx.grant.limits.state_prefixes
    prefixes = (prefix,) if allowed is None else shared_prefixes((prefix,), allowed)
    found = await _list_under(rows, prefixes, limit=limit, after=after)
    return {
        "items": [msgspec.structs.asdict(entry) for entry in found.items],
        "total": found.total,
        "next": found.next,
    }


async def _list_under(
    rows: StateRows, prefixes: tuple[str, ...], *, limit: int, after: str
) -> StatePage:
    """One page over several prefixes, of which none lies under another."""
    items: list[StateEntry] = []
    total, room, more = 0, PAGE_BYTES, False
    for prefix in prefixes:
        wanted = 0 if more else limit - len(items)
        found = await rows.state_list(
            prefix, limit=max(wanted, 1), after=after, max_bytes=max(room, 1)
        )
        total += found.total
        if wanted and room > 0:
            items += found.items
            room -= sum(len(msgspec.json.encode(entry.value)) for entry in found.items)
            more = found.next is not None
        else:
            more = more or bool(found.items)
    return StatePage(tuple(items), total, items[-1].key if more else None)


def _quota(ctx: Context, own: StateQuota) -> StateQuota | None:
    """How much of the state the caller may have; an operator as much as it likes."""
    if ctx.principal.is_operator:
        return None
    usual = Limits(max_state_keys=own.keys, max_state_bytes=own.bytes)
    smallest = usual.smallest(ctx.grant.limits)
    return StateQuota(smallest.max_state_keys, smallest.max_state_bytes)


def _check_key(ctx: Context, key: str) -> None:
    """Keep a caller inside its part of the state; the answer is the same for what exists or not."""
    limits = ctx.grant.limits
    if not limits.allow_key(key):
        named = ", ".join(map(repr, limits.state_prefixes or ()))
        hint = f"your keys start with {named}" if named else "no key is yours"
        message = f"{key!r} lies outside of your part of the state"
        raise DeniedError(message, reason="limit", hint=hint)


@event_handler("state:set", capability="state_write", triggers=["state:set"])
async def set_(
    ctx: Context,
    rows: StateRows,
    quotas: StateLimits,
    key: Key,
    value: Any,
    expect_version: Version | None = None,
) -> dict[str, Any]:
    """Write one value of the shared state, to keep it for later; it is durable once answered.

    Args:
        key: its name, as in 'team/plan'.
        value: any JSON value.
        expect_version: write only if the key still has this version; 0: only if it is new.
    """
    _check_key(ctx, key)
    size = len(msgspec.json.encode(value))
    limit = quotas.value_bytes
    if size > limit:
        raise TooLargeError(
            f"the value has {size:,} bytes; {limit:,} are the limit", hint="split it into more keys"
        )
    entry = await rows.state_set(
        key, value, ctx.principal.id, expect_version=expect_version, quota=_quota(ctx, quotas.quota)
    )
    ctx.emit("state:set", {"key": key, "version": entry.version, "by": ctx.principal.id})
    return {"key": entry.key, "version": entry.version, "updated_at": entry.updated_at}


@event_handler(
    "state:delete", capability="state_write", effect="destructive", triggers=["state:delete"]
)
async def delete(
    ctx: Context, rows: StateRows, key: Key, expect_version: Version | None = None
) -> dict[str, Any]:
    """Remove one value of the shared state.

    Args:
        key: its name.
        expect_version: remove only if the key still has this version.
    """
    _check_key(ctx, key)
    deleted = await rows.state_delete(key, expect_version=expect_version)
    if deleted:
        ctx.emit("state:delete", {"key": key, "version": 0, "by": ctx.principal.id})
    return {"key": key, "deleted": deleted}


def _build(kernel: Kernel, startup: Startup) -> None:
    settings = startup.settings
    quota = StateQuota(settings.state_count_limit, settings.state_total_limit)
    limits = StateLimits(settings.state_value_limit, quota)
    kernel.provide(startup.take(StateLimits, lambda: limits))


SETUP = Setup(build=_build)
