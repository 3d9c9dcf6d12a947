"""agent:runtime — what a host needs to run an agent, and how its prompt is put together.

The capabilities of an agent come in an order: what one needs before it, else as chosen.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
from anyio import to_thread

from remit.errors import InvalidDataError, RemitError
from remit.features.agents.choice import status_warnings
from remit.features.discovery.service import Discovery
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.tool_list import model_tools, shown_tools
from remit.kernel.dispatch.visibility import agent_in_reach, held_by
from remit.model.capability import Capability
from remit.model.grant import Grant
from remit.model.principal import Agent, AgentSpec
from remit.model.schema import Name, config_mistakes
from remit.policy.catalogue import Catalogue
from remit.policy.delegate import agent_layer
from remit.policy.tool_names import names_for
from remit.text.fence import disarmed, fenced_capability

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine

_MIN_RELEVANCE = 0.3
Content = Annotated[str, msgspec.Meta(max_length=1 << 20)]
Query = Annotated[str, msgspec.Meta(max_length=20_000)]
_LATEST = 5
Reason = str


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    content: Content
    role: Name = ""


Messages = Annotated[list[Content | Message], msgspec.Meta(max_length=1_000)]


@event_handler("agent:runtime", capability="own_runtime", effect="read")
async def runtime(
    ctx: Context,
    discovery: Discovery,
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
    agent = _meant(ctx, agent_id)
    is_self = agent.id == ctx.principal.id
    spec, grant = agent.spec, ctx.grant if is_self else held_by(ctx, agent.id)
    catalogue = ctx.catalogue
    order = resolved(catalogue, spec, grant)
    engine = await discovery.engine()
    asked = query or "\n".join(_texts(messages or ())[-_LATEST:])
    relevance = await _relevance(engine, asked, catalogue, order)
    least = discovery.usual.min_relevance
    least = _MIN_RELEVANCE if least is None else least
    own = own_prompt(spec, grant)
    prompt = prompt_of(catalogue, order, own, engine.counter, relevance, least)
    events = shown_tools(ctx.handlers, catalogue, grant)
    tools = model_tools(ctx.handlers, events, await _names(ctx, agent.id, events))
    config, misfits = configs_of(catalogue, grant, order)
    mounts, skills = mounts_and_skills(catalogue, order)
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


def _meant(ctx: Context, agent_id: str) -> Agent:
    if not agent_id and ctx.principal.is_operator:
        hint = "the operator is no agent: name one"
        raise InvalidDataError("which agent?", hint=hint, details={"path": "$.agent_id"})
    return agent_in_reach(ctx, agent_id or ctx.principal.id)


async def _names(ctx: Context, agent: str, events: list[str]) -> Mapping[str, str]:
    """What an agent calls its tools: the answer is put before its model, whoever asked."""
    names, universe = ctx.kernel.names, ctx.catalogue.universe
    found = ctx.kernel.authority.fleet.principal(agent)
    if found is None:  # it has ended meanwhile
        return names_for(universe, events)
    return await names.give(found, universe, events)


def _texts(messages: "list[Content | Message] | tuple[()]") -> list[str]:
    return [one if isinstance(one, str) else one.content for one in messages]


async def _relevance(
    engine: "Engine", asked: str, catalogue: Catalogue, order: "Order"
) -> dict[str, float] | None:
    """How relevant each capability is to what the agent is asked; None: it is asked nothing."""
    if not asked.strip():
        return None
    texts = texts_of(catalogue, order.resolved_ids)
    found = await to_thread.run_sync(engine.relevance, [asked], texts)
    return dict(zip(order.resolved_ids, found, strict=True))


class Order(msgspec.Struct, frozen=True):
    """The capabilities that an agent has, and how it came by them."""

    resolved_ids: tuple[str, ...]
    """All of them: what is always included, then each chosen one behind what it requires."""
    user_selected: tuple[str, ...]
    added_as_dependencies: tuple[str, ...]
    always_included: tuple[str, ...]


def order_of(catalogue: Catalogue, chosen: Iterable[str], held: Iterable[str]) -> Order:
    """Order what is held.

    Args:
        catalogue: the revision.
        chosen: the ids that were switched on, by priority.
        held: the ids that count; whatever is not among them is left out.
    """
    active = set(held)
    selected = list(dict.fromkeys(chosen))
    visited: dict[str, None] = {}
    for root in (*catalogue.base, *selected):
        _visit(catalogue, root, visited)
    # What is required by something that was taken away may still be held.
    resolved = [name for name in visited if name in active]
    selected = [name for name in selected if name in active]
    base = [name for name in catalogue.base if name in active]
    known = {*selected, *base}
    added = [name for name in resolved if name not in known]
    return Order(tuple(resolved), tuple(selected), tuple(added), tuple(base))


def _visit(catalogue: Catalogue, root: str, visited: dict[str, None]) -> None:
    """Add a capability behind all it requires, without recursion; circles were refused before."""
    waiting = [root]
    while waiting:
        name = waiting[-1]
        required = [catalogue.names[r.name] for r in catalogue.capabilities[name].requires]
        missing = [one for one in required if one not in visited]
        if missing and name not in visited:
            waiting.append(missing[0])
            continue
        visited.setdefault(name)
        waiting.pop()


class Counter(Protocol):
    """Counts tokens."""

    def count(self, text: str) -> int:
        """How many tokens a text has."""


class Prompt(msgspec.Struct, frozen=True):
    """The system prompt, and which capabilities have a part in it."""

    text: str
    injected: tuple[dict[str, Any], ...]
    skipped: tuple[dict[str, str], ...]


def resolved(catalogue: Catalogue, spec: AgentSpec, grant: Grant) -> Order:
    """The capabilities of an agent in order: its own list, then what its profile switches on."""
    try:
        layer, _ = agent_layer(catalogue, spec, lives=True)
    except RemitError:  # its profile is gone: it holds nothing
        return order_of(catalogue, (), ())
    own = [catalogue.names[name] for name in spec.capabilities]
    chosen = [*own, *layer.flags]
    on = [name for name in chosen if name in layer.flags and layer.flags[name].on]
    held = dict.fromkeys(grant.capabilities)
    for name in grant.capabilities:  # what one that was made requires comes with it
        held |= dict.fromkeys(
            catalogue.runtime_capabilities[name].members
            if name in catalogue.runtime_capabilities
            else ()
        )
    return order_of(catalogue, on, [name for name in held if _is_useful(catalogue, grant, name)])


def _is_useful(catalogue: Catalogue, grant: Grant, name: str) -> bool:
    """Tell whether an agent can do anything by a capability, or it is words and files alone.

    What somebody above took away entirely must not be talked about.
    """
    made = catalogue.runtime_capabilities.get(name)
    own = catalogue.own_events[name] if made is None else made.bits
    definition = catalogue.capabilities[name]
    tools = {ref.name for ref in definition.claude_tools}
    if not own and not tools:
        return True
    return bool(own & grant.bits) or not tools.isdisjoint(grant.claude_tools)


def texts_of(catalogue: Catalogue, names: Iterable[str]) -> list[str]:
    """What each capability is about, for ranking: its words and those of its events."""
    specs = catalogue.universe.specs
    found = []
    for name in names:
        definition, made = catalogue.capabilities[name], catalogue.runtime_capabilities.get(name)
        own = catalogue.own_events[name] if made is None else made.own
        events = catalogue.universe.names_in(own)
        about = [definition.display_name, definition.description, *definition.tags]
        told = [f"{event} {specs[event].summary}" for event in events]
        found.append("\n".join([*about, definition.system_prompt, *told]))
    return found


def prompt_of(
    catalogue: Catalogue,
    order: Order,
    own: str,
    counter: Counter,
    relevance: Mapping[str, float] | None,
    least: float,
) -> Prompt:
    """The additions of capabilities in order, each in its fence, and then the agent's own prompt.

    Args:
        catalogue: the revision.
        order: the capabilities of the agent.
        own: its own prompt.
        counter: counts tokens.
        relevance: of each capability, for what is asked; None when nothing is.
        least: from which relevance on something is relevant.
    """
    parts, injected, skipped = [], [], []
    for name in order.resolved_ids:
        definition = catalogue.capabilities[name]
        if not definition.system_prompt.strip():
            continue
        reason = _reason(definition, relevance, least)
        if reason:
            skipped.append({"id": name, "reason": reason})
            continue
        text = fenced_capability(name, definition.system_prompt.strip())
        parts.append(text)
        found: dict[str, Any] = {"id": name, "tokens": counter.count(text)}
        if relevance is not None and definition.inject == "relevant":
            found["relevance"] = round(relevance[name], 4)
        injected.append(found)
    text = "\n\n".join([*parts, *([disarmed(own)] if own else [])])
    return Prompt(text, tuple(injected), tuple(skipped))


def _reason(definition: Capability, relevance: Mapping[str, float] | None, least: float) -> Reason:
    """Why the text of a capability is left out; empty when it is not."""
    if definition.inject == "always":
        return ""
    if definition.inject == "never":
        return "never"
    if relevance is None:
        return "no_query"
    return "" if relevance.get(definition.id, 0.0) >= least else "not_relevant"


def own_prompt(spec: AgentSpec, grant: Grant) -> str:
    """The prompt of the profile, and behind it that of the agent."""
    texts = (grant.prompt if spec.profile else "", spec.system_prompt)
    return "\n\n".join(text for text in texts if text)


def configs_of(
    catalogue: Catalogue, grant: Grant, order: Order
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The configuration of each capability that still fits its schema, and those that do not."""
    found, warnings = {}, []
    for name in order.resolved_ids:
        config = grant.config.get(name)
        if config is None:
            continue
        mistakes = config_mistakes(catalogue.capabilities[name].config_schema, config)
        if mistakes:
            message = f"the configuration of {name!r} does not fit any more: {mistakes[0].message}"
            warnings.append({"capability": name, "code": "invalid_config", "message": message})
        else:
            found[name] = config
    return found, warnings


def mounts_and_skills(
    catalogue: Catalogue, order: Order
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The files and the skills that come with the capabilities, in order."""
    mounts, skills = [], []
    for name in order.resolved_ids:
        definition = catalogue.capabilities[name]
        mounts += [
            {"capability": name, "path": one.path, "read_only": one.read_only}
            for one in definition.mounts
        ]
        skills += [{"capability": name, "skill": skill} for skill in definition.skills]
    return mounts, skills


def warnings_of(
    catalogue: Catalogue, spec: AgentSpec, order: Order, found: Sequence[dict[str, str]]
) -> list[dict[str, str]]:
    """What is worth saying: statuses of what was chosen, and what else was found."""
    chosen = dict.fromkeys(order.resolved_ids, True) | spec.capabilities
    return [*status_warnings(catalogue, chosen), *found]
