"""capability:* — what there is to be held."""

from typing import Annotated, Any

import msgspec

from remit.errors import NotFoundError
from remit.model.suggest import did_you_mean
from remit.policy.explain import givers_of
from remit.policy.questions import gives
from remit.runtime.context import Context
from remit.runtime.paging import PAGE_LIMIT, PAGE_MAX, page
from remit.runtime.registry import event_handler
from remit.runtime.view import visible_capabilities

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


@event_handler("capability:list", capability="catalogue_read", effect="read", inline=True)
def list_(ctx: Context, limit: Limit = PAGE_LIMIT, after: str = "") -> dict[str, Any]:
    """List the capabilities whose events you may use.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    return page(visible_capabilities(ctx), lambda name: _card(ctx, name), limit=limit, after=after)


@event_handler("capability:get", capability="catalogue_read", effect="read", inline=True)
def get(ctx: Context, id: str) -> dict[str, Any]:  # noqa: A002 - the wire calls it id
    """Tell everything about one capability: events, tools, requires, prompt, limits.

    Args:
        id: its name; an old name works too.
    """
    visible = visible_capabilities(ctx)
    found = ctx.catalogue.names.get(id)
    if found not in visible:
        raise NotFoundError(f"there is no capability {id!r}", hint=did_you_mean(id, visible))
    answer = _card(ctx, found) | gives(ctx.catalogue, found)
    if not ctx.sees_everything:
        answer["events"] = [event for event in answer["events"] if event in ctx.grant.events]
        answer["claude_tools"] = sorted(ctx.grant.claude_tools.intersection(answer["claude_tools"]))
        answer["requires"] = [name for name in answer["requires"] if name in visible]
    return answer


@event_handler("capability:of_event", capability="catalogue_read", effect="read", inline=True)
def of_event(ctx: Context, event: str) -> dict[str, Any]:
    """Tell which capabilities give an event: all of them.

    Args:
        event: the event in question.
    """
    visible = set(visible_capabilities(ctx))
    givers = [name for name in givers_of(ctx.catalogue, event) if name in visible]
    return {"event": event, "capabilities": givers, "revision": ctx.catalogue.revision}


def _card(ctx: Context, name: str) -> dict[str, Any]:
    definition = ctx.catalogue.capabilities[name]
    return {
        "id": name,
        "name": definition.display_name,
        "description": definition.description,
        "category": definition.category,
        "icon": definition.icon,
        "tags": list(definition.tags),
        "features": list(definition.features),
        "status": definition.status,
        "version": definition.version,
        "always_included": definition.always_included,
        "security_review_required": definition.security_review_required,
        "held": name in ctx.grant.capabilities,
    }
