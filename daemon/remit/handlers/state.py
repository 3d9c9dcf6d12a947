"""state:* — JSON values that agents share and that survive a restart."""

from typing import Annotated, Any

import msgspec

from remit.errors import NotFoundError, TooLargeError
from remit.runtime.context import Context
from remit.runtime.paging import PAGE_LIMIT, PAGE_MAX
from remit.runtime.registry import event_handler

KEY_LIMIT = 512

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_LIMIT)]
Prefix = Annotated[str, msgspec.Meta(max_length=KEY_LIMIT)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
Version = Annotated[int, msgspec.Meta(ge=0)]


@event_handler("state:get", capability="state_read", effect="read")
async def get(ctx: Context, key: Key) -> dict[str, Any]:
    """Read one value of the shared state.

    Args:
        key: its name, as in 'team/plan'.
    """
    entry = await ctx.services.store.state_get(key)
    if entry is None:
        may_look = "state:list" in ctx.grant.events
        hint = "state:list shows what there is" if may_look else ""
        raise NotFoundError(f"there is no state under {key!r}", hint=hint)
    return msgspec.structs.asdict(entry)


@event_handler("state:list", capability="state_read", effect="read")
async def list_(
    ctx: Context, prefix: Prefix = "", limit: Limit = PAGE_LIMIT, after: Prefix = ""
) -> dict[str, Any]:
    """List the shared state by key, a page at a time.

    Args:
        prefix: only keys that start with it.
        limit: how many at the most.
        after: the `next` of the page before.
    """
    found = await ctx.services.store.state_list(prefix, limit=limit, after=after)
    return {
        "items": [msgspec.structs.asdict(entry) for entry in found.items],
        "total": found.total,
        "next": found.next,
    }


@event_handler("state:set", capability="state_write")
async def set_(
    ctx: Context, key: Key, value: Any, expect_version: Version | None = None
) -> dict[str, Any]:
    """Write one value of the shared state; it is durable once this is answered.

    Args:
        key: its name, as in 'team/plan'.
        value: any JSON value.
        expect_version: write only if the key still has this version; 0: only if it is new.
    """
    size = len(msgspec.json.encode(value))
    limit = ctx.services.state_value_limit
    if size > limit:
        raise TooLargeError(
            f"the value has {size:,} bytes; {limit:,} are the limit", hint="split it into more keys"
        )
    entry = await ctx.services.store.state_set(
        key, value, ctx.principal.id, expect_version=expect_version
    )
    return {"key": entry.key, "version": entry.version, "updated_at": entry.updated_at}


@event_handler("state:delete", capability="state_write", effect="destructive")
async def delete(ctx: Context, key: Key, expect_version: Version | None = None) -> dict[str, Any]:
    """Remove one value of the shared state.

    Args:
        key: its name.
        expect_version: remove only if the key still has this version.
    """
    deleted = await ctx.services.store.state_delete(key, expect_version=expect_version)
    return {"key": key, "deleted": deleted}
