"""tool:*, skill:*, link:*, mission:* and registry:* — what there is, how good it is, who gets it.

Everybody sees the entries that discovery would show, by the same rule and no others.
"""

from typing import Annotated, Any, Literal

import msgspec

from remit.errors import InvalidDataError
from remit.features.registry.entry import Declaration, HealthState, Id, Ids, Tags, tag, tags_of
from remit.features.registry.mission import (
    MOST_NEEDS,
    MissionContext,
    bind_mission,
    find,
    link_mission,
    mission_answer,
    mission_id,
    mission_session,
    release,
)
from remit.features.registry.service import CapabilityRegistry, EntrySet, SkillFlag
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import unseen
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, Name, page

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
Need = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Needs = Annotated[tuple[Need, ...], msgspec.Meta(min_length=1, max_length=MOST_NEEDS)]
Model = Annotated[str, msgspec.Meta(max_length=128)]
Trials = Annotated[int, msgspec.Meta(ge=0, le=1_000)]
Reason = Annotated[str, msgspec.Meta(max_length=1_000)]
MissionId = Annotated[str, msgspec.Meta(max_length=64)]
PromptTokens = Annotated[int, msgspec.Meta(ge=0, le=50_000)]


@event_handler("tool:register", capability="registry_admin")
async def register_tool(
    request: Declaration, ctx: Context, registry: CapabilityRegistry
) -> dict[str, Any]:
    """Say of a tool what cannot be read off it, in the place of what was said before.

    Args:
        id: the tool, as in 'tool:state:set'.
        capability: what it does; tools with the same capability are chosen among.
        description: what it does, in your words.
        tags: contexts that it is made for, beside those that it has.
        applies_to: nothing for a tool.
        dependencies: ids of the tools that it cannot do without.
        supersedes: the id of the tool whose place it takes; skills for that one are flagged.
        version: shown, and compared with nothing.
        examples: what it was given, and what it answered.
        variants: nothing for a tool.
        conflicts_with: nothing for a tool.
    """
    return await _declare(ctx, registry, request, kind="tool")


@event_handler("skill:register", capability="registry_admin")
async def register_skill(
    request: Declaration, ctx: Context, registry: CapabilityRegistry
) -> dict[str, Any]:
    """Say of a skill what cannot be read off it, in the place of what was said before.

    Args:
        id: the skill, as in 'skill:git'.
        capability: what it is about.
        description: what it is good for, in your words.
        tags: contexts that it is made for, beside those that it has.
        applies_to: ids or capabilities of the tools that it helps with.
        dependencies: ids of the tools that it cannot do without.
        supersedes: the id of the skill whose place it takes.
        version: shown, and compared with nothing.
        examples: what it was asked, and what came of it.
        variants: by model, the id of the skill to give it instead.
        conflicts_with: ids of the skills that say something else.
    """
    return await _declare(ctx, registry, request, kind="skill")


@event_handler("skill:update", capability="registry_admin")
async def update_skill(
    request: Declaration, ctx: Context, registry: CapabilityRegistry
) -> dict[str, Any]:
    """Change some of what was said of a skill; what is absent stays as it was.

    Args:
        id: the skill, as in 'skill:git'.
        capability: what it is about.
        description: what it is good for, in your words.
        tags: contexts that it is made for, beside those that it has.
        applies_to: ids or capabilities of the tools that it helps with.
        dependencies: ids of the tools that it cannot do without.
        supersedes: the id of the skill whose place it takes.
        version: shown, and compared with nothing.
        examples: what it was asked, and what came of it.
        variants: by model, the id of the skill to give it instead.
        conflicts_with: ids of the skills that say something else.
    """
    known = registry.declarations.get(request.id)
    if known is not None:
        given = {
            name: value for name in request.__struct_fields__ if (value := getattr(request, name))
        }
        request = msgspec.structs.replace(known.declaration, **given)
    return await _declare(ctx, registry, request, kind="skill")


async def _declare(
    ctx: Context, registry: CapabilityRegistry, wanted: Declaration, *, kind: str
) -> dict[str, Any]:
    """Declare something about an entry of a kind that the caller sees."""
    sight = await registry.sight(ctx)
    is_skill = kind == "skill"
    entry = sight.seen.entries.get(wanted.id)
    if entry is None or (entry.layer == "skill") is not is_skill:
        raise unseen(wanted.id, _ids(sight.seen, kind), kind, purpose="declare")
    for field in ("applies_to", "variants", "conflicts_with"):
        if not is_skill and getattr(wanted, field):
            message = f"{field!r} is said of skills"
            raise InvalidDataError(message, hint="leave it out", details={"path": f"$.{field}"})
    for needed in wanted.dependencies:  # or an entry would hide behind what nobody here knows
        if needed not in sight.seen.entries:
            raise unseen(needed, [*sight.seen.entries], "entry", purpose="depend on")
    wanted = msgspec.structs.replace(wanted, tags=tags_of(wanted.tags))
    await registry.declare([wanted], by=ctx.principal.id)
    old, by = wanted.supersedes, ctx.principal.id
    flagged = [] if is_skill else await registry.supersede(sight.seen, old, wanted.id, by=by)
    sight = await registry.sight(ctx)
    found = sight.seen.entries.get(wanted.id)
    told = registry.told(found) if found is not None else {"id": wanted.id}
    return told | {"flagged": flagged}


@event_handler("skill:review", capability="registry_admin")
async def review_skill(
    ctx: Context,
    registry: CapabilityRegistry,
    id: Id,  # noqa: A002 - the contract's name
    reason: Reason = "",
    *,
    done: bool = False,
) -> dict[str, Any]:
    """Flag a skill, so that somebody looks at it again; `registry:health` lists what is flagged.

    Args:
        id: the skill, as in 'skill:git'.
        reason: why.
        done: somebody has looked at it: take the flag away.
    """
    sight = await registry.sight(ctx)
    entry = sight.seen.entries.get(id)
    if entry is None or entry.layer != "skill":
        raise unseen(id, _ids(sight.seen, "skill"), "skill", purpose="review")
    flag = None if done else SkillFlag(reason, ctx.principal.id, registry.clock())
    await registry.flag(id, flag)
    return {"id": id, "flagged": not done}


@event_handler("tool:list", capability="registry", effect="read")
async def list_tools(  # noqa: PLR0913 - what a list can be narrowed by
    ctx: Context,
    registry: CapabilityRegistry,
    *,
    tags: Tags = (),
    capability: Key = "",
    agent: Name | None = None,
    limit: Limit = PAGE_LIMIT,
    after: Key = "",
) -> dict[str, Any]:
    """List the implementations that you may see, with their rates and health.

    Args:
        tags: only those with all of these tags.
        capability: only those that do this.
        agent: somebody else that you may ask about; yourself when absent.
        limit: how many at the most.
        after: the `next` of the page before.
    """
    seen = (await registry.sight(ctx, agent)).seen
    wanted = set(tags_of(tags))
    found = {
        one.id: one
        for one in seen.tools
        if wanted.issubset(one.tags) and capability in ("", one.capability)
    }
    return page(sorted(found), lambda id_: registry.told(found[id_]), limit=limit, after=after)


@event_handler("tool:resolve", capability="registry", effect="read")
async def resolve_tool(  # noqa: PLR0913 - what a choice depends on
    ctx: Context,
    registry: CapabilityRegistry,
    capability: Key,
    *,
    tags: Tags = (),
    model: Model = "",
    exploration: Trials = 0,
    agent: Name | None = None,
) -> dict[str, Any]:
    """Choose among the implementations of a capability, with the arithmetic of each.

    Args:
        capability: what is to be done; an event or the id of a tool will do.
        tags: the context.
        model: who will use it.
        exploration: put one that had fewer trials here first where it may be as good; 0: never.
        agent: somebody else that you may ask about; yourself when absent.
    """
    seen = (await registry.sight(ctx, agent)).seen
    ids = seen.named(capability)
    if not ids:
        raise unseen(capability, seen.capabilities, "capability", purpose="use")
    found = registry.rank(seen, ids, tags_of(tags), tag(model), explore=exploration)
    chosen = {one.id for one in found}
    return {
        "capability": seen.entries[ids[0]].capability,
        "tool": found[0].id if found else None,
        "choices": [one.to_json() for one in found],
        "excluded": [
            {"id": id_} | registry.health(seen.entries[id_]).to_json()
            for id_ in ids
            if id_ not in chosen
        ],
    }


@event_handler("skill:resolve", capability="registry", effect="read")
async def resolve_skills(
    ctx: Context,
    registry: CapabilityRegistry,
    tags: Tags = (),
    tools: Ids = (),
    model: Model = "",
    agent: Name | None = None,
) -> dict[str, Any]:
    """Choose the skills of a context: those that share a tag, or apply to a tool.

    Args:
        tags: the context.
        tools: ids or capabilities of tools.
        model: who is to know them; what fails with it is left out.
        agent: somebody else that you may ask about; yourself when absent.
    """
    seen = (await registry.sight(ctx, agent)).seen
    wanted, names = set(tags_of(tags)), set(tools)
    ids = [
        one.id
        for one in seen.skills
        if wanted.intersection(one.tags) or names.intersection(one.applies_to)
    ]
    found = registry.rank(seen, ids, sorted(wanted), tag(model))
    return {"choices": [one.to_json() for one in found]}


@event_handler("link:mission", capability="registry")
async def link_(  # noqa: PLR0913 - the fields of the contract
    ctx: Context,
    registry: CapabilityRegistry,
    needs: Needs,
    tags: Tags = (),
    model: Model = "",
    agent: Name | None = None,
    *,
    bind: bool = False,
    exploration: Trials = 0,
    skill_tokens: PromptTokens = 4_000,
) -> dict[str, Any]:
    """Equip a mission: its tools with all that they need, its skills, and what is missing.

    Args:
        needs: what has to be done, each in words or as a capability, an event or the id of a tool.
        tags: the context.
        model: who will work on it.
        agent: who will work on it, if you may ask about it; yourself when absent.
        bind: open a session that leaves these tools and nothing else, however few they are.
        exploration: as in `tool:resolve`.
        skill_tokens: the most that the prompt of the skills may have.
    """
    about = MissionContext(
        tags=tags_of(tags), model=tag(model), exploration=exploration, skill_tokens=skill_tokens
    )
    sight = await registry.sight(ctx, agent)
    found = await link_mission(registry, sight, needs, about)
    answer = mission_answer(found, sight, registry, about)
    answer |= {"mission": None, "session": None, "revision": ctx.catalogue.revision}
    if bind:
        entries = sight.seen.entries
        events = {entries[id_].event for id_ in found.linked.order} - {""}
        session = await bind_mission(ctx, events)
        answer |= {"mission": mission_id(session), "session": session.name}
    return answer


@event_handler("mission:end", capability="registry")
async def end(ctx: Context, mission: MissionId) -> dict[str, Any]:
    """End a mission that you have bound: its session is closed, and who works in it holds nothing.

    Args:
        mission: its id, as `link:mission` answered it.
    """
    found = mission_session(ctx, mission)
    return {"mission": mission, "session": found.name, "agents": await release(ctx, found)}


@event_handler("registry:health", capability="registry", effect="read")
async def health(
    ctx: Context,
    registry: CapabilityRegistry,
    state: HealthState | None = None,
    agent: Name | None = None,
    limit: Limit = PAGE_LIMIT,
    after: Key = "",
) -> dict[str, Any]:
    """Tell how healthy tools and skills are, why, and since when.

    Args:
        state: only those of this state.
        agent: somebody else that you may ask about; yourself when absent.
        limit: how many at the most.
        after: the `next` of the page before.
    """
    seen = (await registry.sight(ctx, agent)).seen
    records = {id_: registry.health(one) for id_, one in seen.entries.items()}
    counts: dict[str, int] = {}
    for record in records.values():
        counts[record.state] = counts.get(record.state, 0) + 1
    wanted = sorted(id_ for id_, one in records.items() if state in (None, one.state))

    def item(id_: str) -> dict[str, Any]:
        return {"id": id_} | records[id_].to_json() | _flagged(registry, id_)

    return page(wanted, item, limit=limit, after=after) | {"states": dict(sorted(counts.items()))}


@event_handler("registry:mark", capability="registry_admin")
async def mark(
    ctx: Context,
    registry: CapabilityRegistry,
    id: Id,  # noqa: A002 - as in tool:register
    healthy: bool,  # noqa: FBT001 - a field of the request
    reason: Reason = "",
) -> dict[str, Any]:
    """Say that a tool or skill is well, or put it in quarantine.

    Args:
        id: its id.
        healthy: what you say.
        reason: why.
    """
    sight = await registry.sight(ctx)
    if id not in sight.seen.entries:
        raise unseen(id, sight.seen.entries, "entry", purpose="mark")
    found = await registry.mark(id, is_healthy=healthy, by=ctx.principal.id, reason=reason)
    return {"id": id} | found.to_json()


@event_handler("registry:search", capability="registry", effect="read")
async def search(  # noqa: PLR0913 - what a search can be narrowed by
    ctx: Context,
    registry: CapabilityRegistry,
    query: Annotated[str, msgspec.Meta(max_length=4_096)] = "",
    *,
    tags: Tags = (),
    kind: Literal["tool", "skill"] | None = None,
    agent: Name | None = None,
    limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10,
) -> dict[str, Any]:
    """Find tools and skills: by exact tags, else by meaning, else by a name that is near.

    Args:
        query: what is to be done, or a tag.
        tags: exact tags; those that share the most come first.
        kind: only tools, or only skills.
        agent: somebody else that you may ask about; yourself when absent.
        limit: how many at the most.
    """
    sight = await registry.sight(ctx, agent)
    found = await find(registry, sight, query, tags_of(tags), kind=kind)
    items = [
        registry.told(sight.seen.entries[id_])
        | ({} if relevance is None else {"relevance": round(relevance, 4)})
        for id_, relevance in found["found"][:limit]
    ]
    return {"by": found["by"], "items": items, "hint": found["hint"]}


def _ids(seen: EntrySet, kind: str) -> list[str]:
    return [one.id for one in (seen.skills if kind == "skill" else seen.tools)]


def _flagged(registry: CapabilityRegistry, id_: str) -> dict[str, Any]:
    flag = registry.flags.get(id_)
    return {} if flag is None else {"flag": {"reason": flag.reason, "at": flag.at}}
