"""config:* — the definition files: what they would change, and putting them in force."""

from typing import Any

from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.reload.full_reload import reload_everything
from remit.model.principal import Cause
from remit.model.schema import bounded


@event_handler("config:plan", capability="config_admin", effect="read", wildcard=False)
async def plan(ctx: Context) -> dict[str, Any]:
    """Tell what the definition files on disk would change, and put nothing in force."""
    found = await ctx.kernel.reloader.plan()
    return bounded(found.to_json(), "agents", "profiles")


@event_handler("config:reload", capability="config_admin", wildcard=False)
async def reload(ctx: Context) -> dict[str, Any]:
    """Read definitions, upstreams, cards and skills again; definitions are all or nothing."""
    kernel = ctx.kernel
    cause = Cause("requested", by=ctx.principal.id, decision=ctx.decision)
    done = await reload_everything(kernel.reloader.reload, kernel.reload_parts, cause)
    return done.to_json()


# Both name profiles and events of everybody, so they are for those who may see the files.


@event_handler(
    "config:changed", capability="config_admin", effect="read", wildcard=False, pushed=True
)
def changed(
    *,
    revision: int,
    changed: bool,
    profiles: dict[str, Any],
    agents: dict[str, Any],
    summary: dict[str, int],
) -> None:
    """The definitions in force have changed, or a bad edit was taken back.

    Args:
        revision: the revision in force.
        changed: False when the files are as they were before a bad edit.
        profiles: what each profile that changed gained and lost.
        agents: what each living agent gained and lost.
        summary: how much that is in all.
    """


@event_handler(
    "config:rejected", capability="config_admin", effect="read", wildcard=False, pushed=True
)
def rejected(errors: list[dict[str, Any]], revision: int) -> None:
    """The definition files have mistakes; the revision in force stays.

    Args:
        errors: every mistake with its file, line and column.
        revision: the revision that stays in force.
    """
