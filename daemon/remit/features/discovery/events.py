"""discovery:* — the right tools and skills for this turn, inside a token budget."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from remit.errors import InvalidDataError
from remit.features.discovery.answers import (
    describe_found,
    present,
    turn_tools,
)
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.lessons import OwnLessons
from remit.features.discovery.learning.store import LessonKeeper
from remit.features.discovery.learning.watch import Watch
from remit.features.discovery.questions import DiscoveryConfig, Filters, options_of
from remit.features.discovery.service import Discovery
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.tool_list import shown_tools
from remit.kernel.dispatch.visibility import grant_of, unseen
from remit.model.descriptor import META_TOOL, DescriptorKind
from remit.model.grant import Grant
from remit.model.schema import Key, Name
from remit.policy.tool_names import held_back, names_for, tool_names

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine
    from remit.features.discovery.view import View

Query = Annotated[str, msgspec.Meta(max_length=131_072)]


@event_handler("discovery:discover", capability="discovery", effect="read")
async def discover(  # noqa: PLR0913 - the fields of the contract
    ctx: Context,
    discovery: Discovery,
    query: Query,
    *,
    kind: DescriptorKind | None = None,
    category: Name | None = None,
    only_available: bool = False,
    config: DiscoveryConfig | None = None,
    agent: Name | None = None,
    profile: Name | None = None,
    render: bool = False,
    host: bool = False,
) -> dict[str, Any]:
    """Find what fits a request: a map of everything, summaries of the best, details of the top.

    Args:
        query: what is to be done, in the words of whoever wants it.
        kind: only one kind: tool, skill, extension or channel.
        category: only this category.
        only_available: leave out what cannot be used now.
        config: other budgets than the usual ones.
        agent: somebody else that you may ask about; yourself when absent.
        profile: a profile instead of an agent.
        render: add `prompt`, the whole as one text to put before a model, fenced as data.
        host: name what a host of tools offers, where the texts say how to read on.
    """
    engine = await discovery.engine_for(query)
    grant = grant_of(ctx, agent=agent, profile=profile)
    view = await _view(ctx, engine, grant, agent=agent, host=host)
    filters = Filters(kind, category, only_available)
    options = options_of(discovery.usual, config, grant, filters)
    found = engine.discover(view, query, options, _own(ctx, grant, query))
    answer = present(found, engine, revision=ctx.catalogue.revision, render=render)
    if grant is ctx.grant:  # a look at what somebody else would find is nobody's turn
        _remember(ctx, query, (one.id for one in found.descriptors))
        _charge(ctx, answer["tokens"]["total"], found.full_dump)
    return answer


@event_handler("discovery:tools", capability="discovery", effect="read")
async def tools(
    ctx: Context,
    discovery: Discovery,
    query: Query,
    *,
    config: DiscoveryConfig | None = None,
    agent: Name | None = None,
    profile: Name | None = None,
) -> dict[str, Any]:
    """List the tools for one turn: those that fit a request, and the one to search for more.

    Args:
        query: what is to be done.
        config: other budgets than the usual ones.
        agent: somebody else that you may ask about; yourself when absent.
        profile: a profile instead of an agent.
    """
    engine = await discovery.engine_for(query)
    grant = grant_of(ctx, agent=agent, profile=profile)
    options = options_of(discovery.usual, config, grant, Filters("tool"))
    view = await _view(ctx, engine, grant, agent=agent)
    found = engine.discover(view, query, options, _own(ctx, grant, query))
    listed, skipped = turn_tools(found, engine, options.budgets.total)
    sent = engine.counter.count(msgspec.json.encode(listed).decode())
    if grant is ctx.grant:
        events = {tool["event"] for tool in listed}
        _remember(ctx, query, (one.id for one in found.descriptors if one.event in events))
        _charge(ctx, sent, found.full_dump)
    return {
        "tools": listed,
        "tokens": {"sent": sent, "full_dump": found.full_dump},
        "skipped": skipped,
        "revision": ctx.catalogue.revision,
    }


@event_handler("discovery:describe", capability="discovery", effect="read")
async def describe(
    ctx: Context,
    discovery: Discovery,
    id: Key,  # noqa: A002 - the contract's name
    render: bool = False,  # noqa: FBT001, FBT002 - a field of the request
) -> dict[str, Any]:
    """Read everything about one thing that was found.

    Args:
        id: its id, as in 'tool:state:get'; its event or name will do when only one has it.
        render: add `prompt`, the whole as one text to put before a model, fenced as data.
    """
    engine = await discovery.engine()
    view = await _view(ctx, engine, ctx.grant)
    rows = view.named(id)
    if len(rows) == 1:
        answer = describe_found(
            engine,
            view,
            rows[0],
            places=ctx.sees_everything,
            revision=ctx.catalogue.revision,
            render=render,
        )
        text = answer["prompt"] if render else msgspec.json.encode(answer).decode()
        ctx.kernel.bills.charge(ctx.principal.id, "details", engine.counter.count(text))
        return answer
    seen = [view.index.descriptors[row].id for row in view.rows]
    if rows:
        ids = sorted(view.index.descriptors[row].id for row in rows)
        hint = f"it may be {', '.join(ids)}"
        raise InvalidDataError(f"{id!r} is not one thing", hint=hint, details={"path": "$.id"})
    raise unseen(id, seen, "", purpose="use")


@event_handler("discovery:stats", capability="discovery", effect="read")
async def stats(ctx: Context, discovery: Discovery, experience: Experience) -> dict[str, Any]:
    """Count what you can find, what your turns cost, and what full dumps would have cost."""
    bills = ctx.kernel.bills
    engine = await discovery.engine()
    view = await _view(ctx, engine, ctx.grant)
    answer = {
        "total_indexed": view.total,
        "kinds": view.kinds(),
        "categories": view.categories(),
        "edges": view.edge_counts(),
        "ranker": engine.embedder_name,
        "vectors": engine.index.vector_state,
        "counter": {"name": engine.counter.name, "error": engine.counter.error},
        "full_dump": engine.full_dump(view),
        "bill": msgspec.structs.asdict(bills.bill(ctx.principal.id)),
        "revision": ctx.catalogue.revision,
    }
    if ctx.sees_everything:
        answer |= {
            "version": engine.index.version,
            "learning": experience.enabled,
            "total_bill": msgspec.structs.asdict(bills.total),
            "bills": {name: msgspec.structs.asdict(b) for name, b in sorted(bills.of.items())},
            "ranker_problem": engine.problem,
            "build_seconds": round(discovery.build_seconds, 4),
            "problems": [problem.to_json() for problem in discovery.problems],
            "overridden": discovery.overridden,
        }
    return answer


@event_handler("discovery:feedback", capability="discovery_feedback", effect="write", fleeting=True)
async def feedback(
    ctx: Context,
    discovery: Discovery,
    experience: Experience,
    id: Key,  # noqa: A002 - as in describe
    worked: bool,  # noqa: FBT001 - a field of the request
    query: Annotated[str, msgspec.Meta(max_length=4_096)] = "",
) -> dict[str, Any]:
    """Report whether something that you found did its work, so that it is found better or less.

    Args:
        id: what was used.
        worked: whether it did what it was chosen for.
        query: the request that it was used for; it becomes an example when it worked.
    """
    engine = await discovery.engine()
    view = await _view(ctx, engine, ctx.grant)
    rows = view.named(id)
    if len(rows) != 1:
        raise unseen(id, (), "", purpose="use")
    descriptor = view.index.descriptors[rows[0]]
    experience.reported(ctx.principal.id, descriptor.id, worked=worked, request=query)
    return {"id": descriptor.id, "learned": experience.enabled}


@event_handler("discovery:refresh", capability="discovery_admin", effect="write")
async def refresh(ctx: Context, discovery: Discovery) -> dict[str, Any]:
    """Read the folders of skills and manifests again, and take in what use has taught."""
    discovery.folders_changed()
    engine = await discovery.engine()
    view = await _view(ctx, engine, ctx.grant)
    seen = ctx.sees_everything
    problems = discovery.problems if seen else ()
    return {
        "total_indexed": view.total,
        "version": engine.index.version,
        "problems": [problem.to_json() for problem in problems],
        "overridden": discovery.overridden if seen else [],
    }


@event_handler("discovery:examples", capability="discovery_admin", effect="read", wildcard=False)
async def examples(
    ctx: Context,
    experience: Experience,
    id: Key | None = None,  # noqa: A002 - as in describe
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100,
    after: Annotated[int, msgspec.Meta(ge=0)] = 0,
) -> dict[str, Any]:
    """Read the requests that were learned from use, with who made them and for whom they count.

    Args:
        id: only those of one descriptor.
        limit: how many at the most.
        after: the `next` of the page before.
    """
    learned = experience.examples(id)
    seen = await _subjects(ctx)
    found = learned if seen is None else [one for one in learned if one.subject in seen]
    more = after + limit < len(found)
    items = [
        {
            "id": one.subject,
            "query": one.text,
            "by": one.by,
            "weight": round(one.weight, 3),
            "counts": one.counts,
            "voices": one.voices,
        }
        for one in found[after : after + limit]
    ]
    following = after + limit if more else None
    learning = experience.enabled
    return {"items": items, "total": len(found), "next": following, "learning": learning}


@event_handler(
    "discovery:forget", capability="discovery_admin", effect="destructive", wildcard=False
)
async def forget(
    ctx: Context,
    experience: Experience,
    discovery: Discovery,
    id: Key | None = None,  # noqa: A002 - as in describe
    query: Query | None = None,
) -> dict[str, Any]:
    """Remove what was learned: one request, all about one descriptor, or everything.

    Args:
        id: the descriptor; everything when absent.
        query: one request that was learned for it.
    """
    seen = await _subjects(ctx)
    if seen is None:
        removed = experience.forget(id, query)
    else:
        removed = sum(experience.forget(one, query) for one in seen if id in (None, one))
    await ctx.kernel.service(LessonKeeper).write()
    await discovery.refresh()
    return {"removed": removed}


async def _subjects(ctx: Context) -> set[str] | None:
    """Of what the caller may know what was learned; None: of everything."""
    if ctx.sees_everything:
        return None
    view = await _view(ctx, await ctx.kernel.service(Discovery).engine(), ctx.grant)
    return {view.index.descriptors[row].id for row in view.rows}


async def _view(
    ctx: Context,
    engine: "Engine",
    grant: Grant,
    *,
    agent: Name | None = None,
    host: bool = False,
) -> "View":
    """What a grant may be shown, by the names that its holder knows."""
    universe = ctx.catalogue.universe
    everything = ctx.sees_everything and grant is ctx.grant
    events = shown_tools(ctx.handlers, ctx.catalogue, grant)
    names = await _names(ctx, grant, agent, events)
    usual = tool_names(universe)
    if hidden := held_back(universe, grant.exposed):
        grant = msgspec.structs.replace(grant, exposed=grant.exposed - hidden)
    return engine.view(
        grant,
        everything=everything,
        names={event: name for event, name in names.items() if usual.get(event) != name},
        way=META_TOOL if host else "discovery:describe",
    )


async def _names(
    ctx: Context, grant: Grant, agent: str | None, events: list[str]
) -> Mapping[str, str]:
    names, universe = ctx.kernel.names, ctx.catalogue.universe
    if grant is ctx.grant:
        return await names.give(ctx.principal, universe, events)
    found = None if agent is None else ctx.kernel.keyring.principal(agent)
    if found is None:
        return names_for(universe, events)
    return await names.look(found, universe, events)


def _charge(ctx: Context, sent: int, full_dump: int) -> None:
    ctx.kernel.bills.charge(ctx.principal.id, "searches", sent, full_dump)


def _remember(ctx: Context, query: str, shown: Iterable[str]) -> None:
    ctx.kernel.service(Watch).asked(ctx.principal.id, ctx.session or "", query, shown)


def _own(ctx: Context, grant: Grant, query: str) -> OwnLessons:
    """What the caller's own use says; nothing when it looks at what somebody else would find."""
    experience, caller = ctx.kernel.service(Experience), ctx.principal.id
    if grant is not ctx.grant or caller not in experience.teachers:
        return ()
    return experience.own(caller, query)
