"""capability:* — what there is to be held."""

from typing import Annotated, Any

import msgspec

from remit.features.capabilities.checks import may_change
from remit.features.permissions.reports import remarks
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.tool_list import shown_tools
from remit.kernel.dispatch.visibility import is_in_reach, unseen, visible_capabilities
from remit.model.capability import RuntimeCapability
from remit.model.principal import OPERATOR_ID
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, Name, page
from remit.policy.catalogue import CompiledRuntimeCapability
from remit.policy.queries import givers_of, gives, said

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


@event_handler("capability:list", capability="catalogue_read", effect="read", inline=True)
def list_(ctx: Context, limit: Limit = PAGE_LIMIT, after: Key = "") -> dict[str, Any]:
    """List the capabilities whose events you may use.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    return page(visible_capabilities(ctx), lambda name: _card(ctx, name), limit=limit, after=after)


@event_handler("capability:get", capability="catalogue_read", effect="read")
async def get(ctx: Context, id: Name) -> dict[str, Any]:  # noqa: A002 - the wire calls it id
    """Tell everything about one capability: events, tools, requires, prompt, limits.

    Args:
        id: its name; an old name works too.
    """
    visible = visible_capabilities(ctx)
    found = ctx.catalogue.names.get(id, "")
    if found not in visible:
        raise unseen(id, visible, "capability")
    if found != id:
        ctx.told_old_name("capability", id, found)
    answer = _card(ctx, found) | gives(ctx.catalogue, found) | _origin(ctx, found)
    answer |= remarks(ctx.catalogue.capabilities[found])
    made = ctx.catalogue.runtime_capabilities.get(found)
    if made is not None:
        answer |= _given_now(ctx, made)
    if not ctx.sees_everything:
        for field in ("events", "own_events"):
            answer[field] = [event for event in answer[field] if event in ctx.grant.events]
        answer["claude_tools"] = sorted(ctx.grant.claude_tools.intersection(answer["claude_tools"]))
        answer["requires"] = [name for name in answer["requires"] if name in visible]
    events = shown_tools(ctx.handlers, ctx.catalogue, ctx.grant)
    names = await ctx.kernel.names.give(ctx.principal, ctx.catalogue.universe, events)
    return answer | {"tools": sorted(names[e] for e in answer["events"] if e in names)}


def _gives_now(ctx: Context, made: CompiledRuntimeCapability, event: str) -> bool:
    name = ctx.catalogue.universe.canonical(event)
    return name in _given_now(ctx, made)["events"]


def _given_now(ctx: Context, made: CompiledRuntimeCapability) -> dict[str, Any]:
    """What one that was made at run time gives as long as its author holds what it does now."""
    fleet, universe = ctx.kernel.authority.fleet, ctx.catalogue.universe
    ceiling = fleet.author_ceiling(made.author, made.author_key, ctx.catalogue)
    bits, tools = (made.bits, made.claude_tools) if not made.inert else (0, frozenset[str]())
    if ceiling is not None:
        bits, tools = bits & ceiling.bits, tools & ceiling.claude_tools
    return {
        "events": universe.names_in(bits),
        "own_events": universe.names_in(bits & made.own),
        "claude_tools": sorted(tools),
        "requires": list(made.members),
        "limits": made.limits.to_json(),
    }


def _origin(ctx: Context, name: str) -> dict[str, Any]:
    """Where a definition comes from; its versions for those who may change it."""
    definition = ctx.catalogue.capabilities[name]
    current = (
        ctx.kernel.authority.current.made if name in ctx.catalogue.runtime_capabilities else ()
    )
    made = next((one for one in current if one.id == name), None)
    return {
        "inject": definition.inject,
        "skills": list(definition.skills),
        "files": [mount.path for mount in definition.mounts],
        "versions": _versions(made) if made and may_change(ctx, made) else [],
        **said(
            inert=ctx.catalogue.runtime_capabilities[name].inert
            if name in ctx.catalogue.runtime_capabilities
            else ""
        ),
    }


def _versions(made: RuntimeCapability) -> list[dict[str, Any]]:
    return [
        {
            "version": version.number,
            "definition_hash": version.definition_hash,
            "by": version.by,
            "at": version.at,
        }
        for version in made.versions
    ]


@event_handler("capability:of_event", capability="catalogue_read", effect="read", inline=True)
def of_event(ctx: Context, event: Name) -> dict[str, Any]:
    """Tell which capabilities give an event, by themselves or by what they require.

    Args:
        event: the event in question.
    """
    visible = set(visible_capabilities(ctx))
    if not ctx.sees_everything and ctx.catalogue.universe.canonical(event) not in ctx.grant.events:
        visible.clear()  # what gives an event that the caller does not hold is not for it to know
    made = [
        n for n, one in ctx.catalogue.runtime_capabilities.items() if _gives_now(ctx, one, event)
    ]
    givers = [name for name in sorted([*givers_of(ctx.catalogue, event), *made]) if name in visible]
    return {"event": event, "capabilities": givers, "revision": ctx.catalogue.revision}


def _card(ctx: Context, name: str) -> dict[str, Any]:
    definition = ctx.catalogue.capabilities[name]
    return {
        "id": name,
        "name": definition.display_name,
        "description": definition.description,
        **said(category=definition.category, icon=definition.icon),
        "tags": list(definition.tags),
        "features": list(definition.features),
        "status": definition.status,
        **said(version=definition.version),
        "always_included": definition.always_included,
        "security_review_required": definition.security_review_required,
        "held": name in ctx.grant.capabilities,
        "origin": _author(ctx, name),
    }


def _author(ctx: Context, name: str) -> str:
    """`file`, or who made it; one out of reach has no name."""
    made = ctx.catalogue.runtime_capabilities.get(name)
    if made is None:
        return "file"
    known = made.author == OPERATOR_ID or is_in_reach(ctx, made.author)
    return f"user:{made.author}" if known else "user"
