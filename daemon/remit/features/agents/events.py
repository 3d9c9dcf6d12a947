"""agent:* — spawning, changing and ending agents. The spawner is the parent; no message says so."""

import re
import secrets
from typing import Annotated, Any, Literal

import msgspec

from remit.errors import ConflictError, DeniedError, RemitError
from remit.features.agents.choice import check_configured, choose, spec_warnings
from remit.features.agents.delegation import (
    Offer,
    check_launch,
    check_room,
    check_spec,
    offer,
    rights_behind,
)
from remit.features.agents.launcher import Launcher
from remit.kernel.authority.fleet import NOTHING
from remit.kernel.authority.keyring import token_hash
from remit.kernel.authority.plans import changes_between, holdings
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import (
    agent_in_reach,
    binding,
    free_name,
    is_in_reach,
    is_of_session,
    unknown_agent,
)
from remit.model.launch import LaunchRequest
from remit.model.limits import NO_LIMITS, Limits
from remit.model.principal import RESERVED, Agent, AgentSpec, AgentStatus, CapabilityChoice
from remit.model.schema import Name, NewName, Variables
from remit.policy.delegate import Excess

NAME_BYTES = 64
PublicKey = Annotated[str, msgspec.Meta(min_length=40, max_length=40)]
Prompt = Annotated[str, msgspec.Meta(max_length=65_536)]
Tools = Annotated[tuple[Name, ...], msgspec.Meta(max_length=1000)]
Title = Annotated[str, msgspec.Meta(max_length=200)]
Capabilities = (
    Annotated[dict[Name, bool], msgspec.Meta(max_length=200)]
    | Annotated[tuple[Name | CapabilityChoice, ...], msgspec.Meta(max_length=200)]
)
OnExcess = Literal["refuse", "narrow"]
_NOBODY = Agent(id="")


class SpawnRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Who is to be, and what it may do."""

    profile: Name = ""
    agent_id: NewName | None = None
    inherit: bool = False
    capabilities: Capabilities = {}
    additional_tools: Tools = ()
    disallowed_tools: Tools = ()
    variables: Variables = {}
    name: Title = ""
    system_prompt: Prompt = ""
    public_key: PublicKey | None = None
    on_excess: OnExcess = "refuse"
    session: Name | None = None
    limits: Limits = NO_LIMITS
    launch: LaunchRequest | None = None


class UpdateRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whom to change, and what takes the place of what it has; absent fields stay."""

    agent_id: Name
    profile: Name | None = None
    capabilities: Capabilities | None = None
    additional_tools: Tools | None = None
    disallowed_tools: Tools | None = None
    variables: Variables | None = None
    name: Title | None = None
    system_prompt: Prompt | None = None
    status: AgentStatus | None = None
    limits: Limits | None = None
    on_excess: OnExcess | None = None


def _spawned_rights(request: SpawnRequest, ctx: Context) -> Any:
    try:
        parent = None if ctx.principal.is_operator else ctx.principal.id
        return rights_behind(ctx, _spec(ctx, request, parent), parent)
    except RemitError as error:  # then there is nothing that an approval could stand for
        return error.code


@event_handler("agent:spawn", capability="spawn_agents", meaning=_spawned_rights)
async def spawn(request: SpawnRequest, ctx: Context) -> dict[str, Any]:
    """Create an agent under yourself, with no more than you hold.

    Args:
        profile: its profile; absent: only what everybody has.
        agent_id: its name; made up when absent.
        inherit: give it all that you hold, now and later.
        capabilities: flags that switch on or off, or a list of names and {ref, config} in order.
        additional_tools: events, patterns or model tools to add.
        disallowed_tools: events, patterns or model tools to take away.
        variables: values for the variables of the profile.
        name: its name for people.
        system_prompt: text for its system prompt.
        public_key: its CURVE public key in Z85; absent: a key pair is made and answered once.
        on_excess: what to do when it would hold more than you: refuse, or narrow.
        session: the session it works in; one that you or somebody above you opened binds it.
        limits: limits of its own; they never widen those it has anyway.
        launch: the operator's command to start instead of the profile's; an empty one: none.
    """
    kernel = ctx.kernel
    parent = None if ctx.principal.is_operator else ctx.principal.id
    spec = _spec(ctx, request, parent)
    check_spec(spec, parent)
    offered = offer(ctx, spec, parent, asked=spec)
    check_configured(ctx, spec, request.capabilities)
    launcher, own_key = kernel.find(Launcher), request.public_key is not None
    spec = check_launch(launcher, spec, offered.grant, ctx.catalogue, own_key=own_key)
    check_room(ctx, parent)
    name = _name(ctx, request)
    credentials, token_hash = _credentials(request.public_key)
    agent = Agent(
        id=name,
        parent=parent,
        public_key=credentials["public_key"],
        token_hash=token_hash,
        created_at=kernel.wall_clock(),
        spec=spec,
    )
    # INVARIANT: nothing is awaited between the check of the room and the place being taken.
    await kernel.keyring.spawn(agent)
    launched = bool(spec.launch or spec.launches_profile)
    if launcher is not None and launched:
        launcher.launch(name, agent.public_key, credentials["secret_key"])
    return {
        "agent_id": name,
        "parent": parent,
        **_given(ctx, offered),
        **_resource(ctx, agent),
        "bound": spec.session_names,
        "credentials": credentials,
        "launched": launched,
    }


def _spec(ctx: Context, request: SpawnRequest, parent: str | None) -> AgentSpec:
    above = None if parent is None else ctx.kernel.authority.fleet.get(parent)
    choice = choose(ctx, request.capabilities)
    return AgentSpec(
        profile=request.profile,
        inherit=request.inherit,
        capabilities=choice.capabilities,
        configs=choice.configs,
        additional_tools=request.additional_tools,
        disallowed_tools=request.disallowed_tools,
        variables=request.variables,
        name=request.name,
        system_prompt=request.system_prompt,
        session=request.session,
        bound=binding(ctx, request.session),
        narrow=request.on_excess == "narrow",
        limits=request.limits,
        parent_key="" if above is None else above.public_key,
        launch=None if request.launch is None else msgspec.to_builtins(request.launch),
        launches_profile=request.launch is None,
    )


def _name(ctx: Context, request: SpawnRequest) -> str:
    """The name of a new agent: as it was asked for, or as near to that as is free."""
    keyring, asked = ctx.kernel.keyring, request.agent_id
    if asked is None:
        return _new_name(ctx, request.profile)
    if keyring.is_free(asked):
        return asked
    if asked in RESERVED or is_in_reach(ctx, asked):
        message = f"the name {asked!r} is taken"
        raise ConflictError(message, hint="choose another one, or leave it out")
    return free_name(asked, keyring.is_free, most=NAME_BYTES)


def _new_name(ctx: Context, profile: str) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", profile.lower()).strip("-")[:40]
    stem = stem if stem[:1].isalpha() else "agent"
    return free_name(stem, ctx.kernel.keyring.is_free, most=NAME_BYTES)


def _credentials(public_key: str | None) -> tuple[dict[str, str], str]:
    """What a new agent shows at the door; its secrets are answered once and kept nowhere."""
    if public_key is not None:
        return {"public_key": public_key}, ""
    import zmq  # noqa: PLC0415 - commands that only ask questions come past this module

    public, secret = zmq.curve_keypair()
    token = secrets.token_urlsafe(32)
    made = {"public_key": public.decode(), "secret_key": secret.decode(), "token": token}
    return made, token_hash(token)


def _resource(ctx: Context, agent: Agent) -> dict[str, Any]:
    spec = agent.spec
    reviewed = ctx.catalogue.reviewed_for(agent.id, agent.public_key)
    return {
        "name": spec.name,
        "system_prompt": spec.system_prompt,
        "capabilities": spec.chosen,
        "status": spec.status,
        "warnings": spec_warnings(ctx, spec, agent.id, reviewed),
    }


def _given(ctx: Context, offered: Offer) -> dict[str, Any]:
    grant = offered.grant
    given: dict[str, Any] = {
        "allowed_events": sorted(grant.events),
        "allowed_claude_tools": sorted(grant.claude_tools),
        "limits": grant.limits.to_json(),
        "revision": ctx.catalogue.revision,
    }
    return given if offered.cut is None else given | {"cut": _listed(offered.cut)}


def _listed(cut: Excess) -> dict[str, list[str]]:
    return {"events": list(cut.events), "claude_tools": list(cut.claude_tools)}


def _changed_rights(request: UpdateRequest, ctx: Context) -> Any:
    try:
        agent = agent_in_reach(ctx, request.agent_id)
        return rights_behind(ctx, _changed(ctx, agent, request), agent.parent)
    except RemitError as error:
        return error.code


@event_handler("agent:update", capability="adjust_agents", meaning=_changed_rights)
async def update(request: UpdateRequest, ctx: Context) -> dict[str, Any]:
    """Change what one of your descendants may do; it acts on all below it at once.

    Args:
        agent_id: the agent.
        profile: its new profile.
        capabilities: flags or a list as in agent:spawn, instead of those before.
        additional_tools: events, patterns or model tools to add, instead of those before.
        disallowed_tools: events, patterns or model tools to take away, instead of those before.
        variables: values for the variables of the profile, instead of those before.
        name: its name for people.
        system_prompt: text for its system prompt.
        status: active, or archived: it and all below it hold nothing until it is active again.
        limits: limits of its own, instead of those before.
        on_excess: what to do when it would hold more than you or its parent: refuse, or narrow.
    """
    kernel = ctx.kernel
    async with kernel.keyring.updating:
        agent = _changeable(ctx, request.agent_id)
        spec = _changed(ctx, agent, request)
        check_spec(spec, agent.parent)
        reviewed = ctx.catalogue.reviewed_for(agent.id, agent.public_key)
        asked = _changed(ctx, _NOBODY, request)
        offered = offer(ctx, spec, agent.parent, reviewed, asked=asked)
        if any(x is not None for x in (request.capabilities, request.profile, request.variables)):
            check_configured(ctx, spec, request.capabilities or {})
        fleet, catalogue = kernel.authority.fleet, kernel.authority.catalogue
        # What it made gives others no more than it holds itself, so they may lose with it.
        affected = fleet.names() if catalogue.runtime_capabilities else fleet.subtree(agent.id)
        before = holdings(fleet, catalogue, affected)
        agent = msgspec.structs.replace(agent, spec=spec)
        await kernel.keyring.update(agent)
        after = holdings(fleet, catalogue, affected)
    changes = changes_between(before, after)
    kernel.delivery.tell_changes(changes, revision=catalogue.revision)
    if spec.status != "active":
        offered = Offer(NOTHING, offered.cut)
    shown = _resource(ctx, agent)
    return {"agent_id": agent.id, "parent": agent.parent, **_given(ctx, offered), **shown}


def _changed(ctx: Context, agent: Agent, request: UpdateRequest) -> AgentSpec:
    """What an agent is to be after a change."""
    asked = msgspec.structs.asdict(request)
    fields = [f for f in AgentSpec.__struct_fields__ if asked.get(f) is not None]
    changes = {field: asked[field] for field in fields}
    if request.capabilities is not None:
        choice = choose(ctx, request.capabilities)
        changes |= {"capabilities": choice.capabilities, "configs": choice.configs}
    if request.on_excess is not None:
        changes["narrow"] = request.on_excess == "narrow"
    return msgspec.structs.replace(agent.spec, **changes)


def _changeable(ctx: Context, name: str) -> Agent:
    agent = agent_in_reach(ctx, name)
    if agent.id == ctx.principal.id:
        raise DeniedError("an agent does not change itself", reason="no_grant")
    if ctx.kernel.keyring.is_client(name):
        hint = "revoke its key and add it again, or edit its profile"
        raise ConflictError(f"{name!r} is a client with a key, not a spawned agent", hint=hint)
    if not is_of_session(ctx, name):
        # It would keep, outside of the session, what the request could not give it inside.
        message = f"{name!r} is not bound to the session {ctx.session!r} of this request"
        raise DeniedError(message, reason="no_grant", hint="change it outside of the session")
    return agent


@event_handler("agent:terminate", capability="spawn_agents", effect="destructive", only_takes=True)
async def terminate(ctx: Context, agent_id: Name) -> dict[str, Any]:
    """End an agent and all its descendants: they are shut out at once.

    Args:
        agent_id: the agent.
    """
    keyring = ctx.kernel.keyring
    if ctx.principal.is_operator and keyring.is_unwritten(agent_id):
        return {"agent_id": agent_id, "terminated": await keyring.end(agent_id)}
    agent = agent_in_reach(ctx, agent_id)
    if not keyring.is_client(agent.id):
        ended = await keyring.end(agent.id)
        return {"agent_id": agent_id, "terminated": ended}
    if not ctx.principal.is_operator and agent.id != ctx.principal.id:
        raise unknown_agent(agent_id)
    ended = ctx.kernel.authority.fleet.subtree(agent.id)
    await keyring.revoke(agent.id)
    return {"agent_id": agent_id, "terminated": ended}
