"""agent:runtime — what a host needs to run an agent."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from remit.errors import InvalidDataError
from remit.features.agents.prompt import (
    brought,
    configs_of,
    own_prompt,
    prompt_of,
    resolved,
    texts_of,
    warnings_of,
)
from remit.features.discovery.service import Finder
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.tool_list import model_tools, shown_tools
from remit.kernel.dispatch.visibility import agent_in_reach, held_by
from remit.model.names import Name
from remit.policy.tool_names import names_for

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine

_MIN_RELEVANCE = 0.3


Content = Annotated[str, msgspec.Meta(max_length=1 << 20)]


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    content: Content
    role: Name = ""


Query = Annotated[str, msgspec.Meta(max_length=20_000)]
Messages = Annotated[list[Content | Message], msgspec.Meta(max_length=1_000)]
_LATEST = 5


@event_handler("agent:runtime", capability="own_runtime", effect="read")
async def runtime(
    ctx: Context,
    finder: Finder,
    agent_id: Name = "",
    query: Query = "",
    messages: Messages | None = None,
) -> dict[str, Any]:
    """Tell what a host runs an agent with: system prompt, tools, limits, files and their tokens.

    Args:
        agent_id: yourself when absent, or one of your descendants.
        query: what the agent is asked; prompts of relevant capabilities are chosen by it.
        messages: the conversation instead of a query, oldest first; the latest few count.
    """
    if not agent_id and ctx.principal.is_operator:
        hint = "the operator is no agent: name one"
        raise InvalidDataError("which agent?", hint=hint, details={"path": "$.agent_id"})
    agent = agent_in_reach(ctx, agent_id or ctx.principal.id)
    is_self = agent.id == ctx.principal.id
    spec, grant = agent.spec, ctx.grant if is_self else held_by(ctx, agent.id)
    catalogue = ctx.catalogue
    order = resolved(catalogue, spec, grant)
    asked = query or "\n".join(_texts(messages or ())[-_LATEST:])
    engine = await finder.engine()
    relevance = None
    if asked.strip():
        relevance = await _relevance(engine, asked, texts_of(catalogue, order.resolved_ids))
        relevance = dict(zip(order.resolved_ids, relevance, strict=True))
    least = finder.usual.min_relevance
    least = _MIN_RELEVANCE if least is None else least
    own = own_prompt(spec, grant)
    prompt = prompt_of(catalogue, order, own, engine.counter, relevance, least)
    events = shown_tools(ctx.handlers, catalogue, grant)
    tools = model_tools(ctx.handlers, events, await _names(ctx, agent.id, events))
    config, misfits = configs_of(catalogue, grant, order)
    mounts, skills = brought(catalogue, order)
    tokens = {
        "system_prompt": engine.counter.count(prompt.text),
        "tools": engine.counter.count(msgspec.json.encode(tools).decode()) if tools else 0,
    }
    if is_self:  # a look at what somebody else is run with is nobody's turn
        bills = ctx.kernel.bills
        bills.charge(agent.id, "prompts", tokens["system_prompt"])
        bills.charge(agent.id, "lists", tokens["tools"], tokens["tools"])
    return {
        "agent_id": agent.id,
        "name": spec.name,
        "status": spec.status,
        "system_prompt": prompt.text,
        "injected": list(prompt.injected),
        "skipped": list(prompt.skipped),
        **{name: list(ids) for name, ids in msgspec.structs.asdict(order).items()},
        "tools": tools,
        "model_tools": sorted(grant.claude_tools),
        "limits": grant.limits.to_json(),
        "config": config,
        "mounts": mounts,
        "skills": skills,
        "tokens": tokens | {"total": sum(tokens.values())},
        "warnings": warnings_of(catalogue, spec, order, misfits),
        "revision": catalogue.revision,
    }


async def _names(ctx: Context, agent: str, events: list[str]) -> Mapping[str, str]:
    """What an agent calls its tools: the answer is put before its model, whoever asked."""
    names, universe = ctx.kernel.names, ctx.catalogue.universe
    found = ctx.kernel.authority.fleet.principal(agent)
    if found is None:  # it has ended meanwhile
        return names_for(universe, events)
    return await names.give(found, universe, events)


def _texts(messages: "list[Content | Message] | tuple[()]") -> list[str]:
    return [one if isinstance(one, str) else one.content for one in messages]


async def _relevance(engine: "Engine", asked: str, texts: list[str]) -> Any:
    # Commands without a daemon list the events here, and must load neither anyio nor numpy.
    from anyio import to_thread  # noqa: PLC0415

    from remit.features.discovery.rank import TextRanker  # noqa: PLC0415

    return await to_thread.run_sync(TextRanker(lambda: engine.indexer), [asked], texts)
