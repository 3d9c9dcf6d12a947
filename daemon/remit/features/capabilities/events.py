"""capability:* — making capabilities out of what you hold, changing and removing them."""

from typing import Annotated, Any

import msgspec

from remit.errors import ConflictError, DeniedError, InvalidDataError
from remit.features.capabilities.checks import author_lives, check_definition, may_change
from remit.features.capabilities.service import RuntimeCapabilities
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import (
    free_name,
    is_in_reach,
    unseen,
    visible_capabilities,
    visible_profiles,
)
from remit.model.capability import (
    Description,
    Files,
    Inject,
    Label,
    Labels,
    Names,
    Prompt,
    RuntimeCapability,
    RuntimeDefinition,
    RuntimeVersion,
    Skills,
    Status,
)
from remit.model.limits import Limits
from remit.model.principal import Cause
from remit.model.schema import Name, whole

Id = Annotated[str, whole(r"[a-z][a-z0-9_-]{0,37}", most=38)]
ID_BYTES = 38
_MOST_USERS = 20


class CreateRequest(RuntimeDefinition, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new capability and its definition."""

    id: Id


class ChangeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which capability, and what takes the place of what it says; absent fields stay."""

    id: Id
    expect_version: int | None = None
    description: Description | None = None
    name: Label | None = None
    category: Label | None = None
    icon: Label | None = None
    tags: Labels | None = None
    features: Labels | None = None
    event_patterns: Names | None = None
    claude_tools: Names | None = None
    requires: Names | None = None
    mcp_tools: bool | None = None
    resource_limits: Limits | None = None
    status: Status | None = None
    system_prompt: Prompt | None = None
    inject: Inject | None = None
    skills: Skills | None = None
    config_schema: dict[str, Any] | None = None
    mounts: Files | None = None


@event_handler("capability:create", capability="make_capabilities")
async def create(
    request: CreateRequest, ctx: Context, capabilities: RuntimeCapabilities
) -> dict[str, Any]:
    """Make a capability out of what you hold; it never gives more than you hold at that moment.

    Args:
        id: its name, at most 38 bytes.
        description: what it lets an agent do, in one line.
        name: its name for people, at most 38 bytes.
        category: its group in lists.
        icon: its icon in lists.
        tags: words to find it by.
        features: selling points shown in lists.
        event_patterns: events of yours, by name or by a prefix ending in '*'.
        claude_tools: model tools of yours.
        requires: capabilities of the files that come with it; you must hold all they give.
        mcp_tools: whether tool lists show its events.
        resource_limits: limits that come with it.
        status: available, coming_soon, deprecated or retired.
        system_prompt: text for the system prompt of those who hold it, at most 65,536 bytes.
        inject: when that text is added: always, relevant or never.
        skills: skills that belong to it, at most 16.
        config_schema: JSON Schema of its configuration for an agent; it may not use references.
        mounts: files that its holders find under /capabilities/ID/, at most 32.
    """
    fields = {name: getattr(request, name) for name in RuntimeDefinition.__struct_fields__}
    name, definition = _named(ctx, request.id, RuntimeDefinition(**fields))
    draft = _draft(ctx, name, definition)
    check_definition(ctx, draft)
    made, outcome = await capabilities.create(name, ctx.principal.id, definition, _cause(ctx))
    return _answer(made, outcome.revision, changed=True)


@event_handler("capability:update", capability="make_capabilities")
async def update(
    request: ChangeRequest, ctx: Context, capabilities: RuntimeCapabilities
) -> dict[str, Any]:
    """Change a capability that you, or somebody you spawned, made; it acts on all holders at once.

    Args:
        id: the capability.
        expect_version: change it only if this version is in force.
        description: what it lets an agent do, in one line.
        name: its name for people.
        category: its group in lists.
        icon: its icon in lists.
        tags: words to find it by.
        features: selling points shown in lists.
        event_patterns: events, instead of those before.
        claude_tools: model tools, instead of those before.
        requires: capabilities of the files, instead of those before.
        mcp_tools: whether tool lists show its events.
        resource_limits: limits, instead of those before.
        status: available, coming_soon, deprecated or retired.
        system_prompt: text for the system prompt of those who hold it.
        inject: when that text is added: always, relevant or never.
        skills: skills, instead of those before.
        config_schema: JSON Schema of its configuration for an agent; an empty one takes it away.
        mounts: files, instead of those before.
    """
    made = _changeable(ctx, request.id)
    fields = [
        name for name in RuntimeDefinition.__struct_fields__ if getattr(request, name) is not None
    ]
    asked = msgspec.to_builtins({name: getattr(request, name) for name in fields})
    present = msgspec.to_builtins(made.latest.definition)
    try:
        definition = msgspec.convert(present | asked, RuntimeDefinition)
    except msgspec.ValidationError as error:
        raise InvalidDataError(str(error), details={"path": "$"}) from error
    if not definition.config_schema:
        definition = msgspec.structs.replace(definition, config_schema=None)
    if not author_lives(ctx, made):
        message = f"the author of {made.id!r} is gone, and it gives nothing any more"
        raise ConflictError(message, hint="remove it, and make it again as your own")
    draft = _with(made, definition)
    check_definition(ctx, draft)
    changed, outcome = await capabilities.update(
        made, definition, _cause(ctx), expect=request.expect_version
    )
    return _answer(changed, outcome.revision, changed=outcome.changed)


@event_handler(
    "capability:remove", capability="make_capabilities", effect="destructive", only_takes=True
)
async def remove(ctx: Context, capabilities: RuntimeCapabilities, id: Name) -> dict[str, Any]:  # noqa: A002 - the wire calls it id
    """Remove a capability that you, or somebody you spawned, made, and that nobody uses.

    Args:
        id: the capability.
    """
    made = _changeable(ctx, id)
    outcome = await capabilities.remove(made, lambda: _users(ctx, made.id), _cause(ctx))
    return {"id": made.id, "removed": True, "revision": outcome.revision}


def _named(ctx: Context, asked: str, said: RuntimeDefinition) -> tuple[str, RuntimeDefinition]:
    """The id of a new capability; one that is taken out of sight is changed, with its folder."""
    made = ctx.kernel.service(RuntimeCapabilities)
    known = ctx.catalogue.names.get(asked, asked)
    if made.is_free(asked) or ctx.principal.is_operator or known in visible_capabilities(ctx):
        return asked, said
    name = free_name(asked, made.is_free, most=ID_BYTES)
    before, after = (_draft(ctx, one, said).folder for one in (asked, name))
    moved = (
        msgspec.structs.replace(one, path=one.path.replace(before, after, 1)) for one in said.mounts
    )
    return name, msgspec.structs.replace(said, mounts=tuple(moved))


def _draft(ctx: Context, name: str, definition: RuntimeDefinition) -> RuntimeCapability:
    author = ctx.kernel.authority.fleet.get(ctx.principal.id)
    draft = RuntimeCapability(
        id=name,
        author=ctx.principal.id,
        author_key="" if author is None else author.public_key,
        versions=(),
    )
    return _with(draft, definition)


def _with(made: RuntimeCapability, definition: RuntimeDefinition) -> RuntimeCapability:
    return made.changed(RuntimeVersion(0, definition, "", "", 0.0))


def _changeable(ctx: Context, name: str) -> RuntimeCapability:
    made = ctx.kernel.service(RuntimeCapabilities).get(name)
    if made is not None and may_change(ctx, made):
        return made
    visible = visible_capabilities(ctx)
    if name not in visible:
        raise unseen(name, visible, "capability")
    whose = (
        "stands in the files"
        if name not in ctx.catalogue.runtime_capabilities
        else "was made by another one"
    )
    raise DeniedError(f"{name!r} {whose}", reason="no_grant", hint="only its author changes it")


def _users(ctx: Context, name: str) -> str:
    """Who uses a capability, as far as the caller may know; empty when nobody does."""
    current = ctx.kernel.authority.current.catalogue
    profiles = [
        profile
        for profile, composition in current.compositions.items()
        if any(flag.capability == name for part in composition.parts for flag in part.flags)
    ]
    agents = [one.id for one in ctx.kernel.authority.fleet.all() if name in one.spec.capabilities]
    seen = set(visible_profiles(ctx))
    shown = [f"the profile {one!r}" for one in sorted(profiles) if one in seen]
    shown += [f"the agent {one!r}" for one in sorted(agents) if is_in_reach(ctx, one)]
    hidden = len(shown) < len(profiles) + len(agents)
    listed = shown[:_MOST_USERS]
    return " and ".join([*listed, *(["others"] if hidden or len(shown) > _MOST_USERS else [])])


def _cause(ctx: Context) -> Cause:
    return Cause("capability_made", by=ctx.principal.id, decision=ctx.decision)


def _answer(made: RuntimeCapability, revision: int, *, changed: bool) -> dict[str, Any]:
    return {
        "id": made.id,
        "author": made.author,
        "version": made.latest.number,
        "definition_hash": made.latest.definition_hash,
        "changed": changed,
        "revision": revision,
    }
