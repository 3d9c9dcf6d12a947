"""What an agent is given: its rights, and the process that it is started with.

Never more than the giver holds, and never more agents than allowed. What to start is what the
request said, else what the profile says.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from remit.config.definitions.launchers import Commands
from remit.errors import (
    REQUEST,
    ExceedsParentError,
    InvalidDataError,
    LimitError,
    NotFoundError,
    RemitError,
)
from remit.features.agents.launcher import Launcher
from remit.features.tools.formats import ToolServer, claude_arguments
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import held_by, look_up, sessions_of, sight, visible_profiles
from remit.kernel.processes.guard import own_command
from remit.model.event import Universe
from remit.model.grant import Grant
from remit.model.launch import NO_LAUNCH, NO_REQUEST, READY, Launch, LaunchRequest
from remit.model.names import ToolEntry
from remit.model.principal import Agent, AgentSpec
from remit.policy.catalogue import Catalogue
from remit.policy.decide import confine
from remit.policy.delegate import (
    NO_EXCESS,
    Excess,
    check_denials,
    excess,
    inherit,
    resolve_agent,
    unheld,
)
from remit.policy.queries import gives

if TYPE_CHECKING:
    from remit.kernel.authority.revision import Authority

_MOST_KEPT = 200
MAX_DEPTH = 32
"""How deep any tree may be, whatever the limits say."""


class Offer(msgspec.Struct, frozen=True, eq=False):
    """The grant that an agent will get, and the excess that was cut from it."""

    grant: Grant
    cut: Excess | None
    """As far as the caller may know; None: nothing was cut."""


def offer(
    ctx: Context,
    spec: AgentSpec,
    parent: str | None,
    reviewed: frozenset[str] = frozenset(),
    *,
    asked: AgentSpec,
) -> Offer:
    """Work out what an agent under `parent` will hold.

    The ceilings are what its parent holds now and what the caller holds now, both in the session of
    the request if it names one. A pattern among its tools gives what they hold of it. `reviewed`
    are the capabilities that were approved for it; `asked` is the part of the spec that the request
    itself names.

    Raises:
        ExceedsParentError: it would hold more, and the spec does not accept a cut.
        InvalidDataError: something in the spec cannot be used.
        NotFoundError: the profile is not there, or not for the caller.
    """
    _check_profile(ctx, spec, asked)
    ceilings = _ceilings(ctx, parent)
    grant, beyond = _own(ctx, spec, ceilings, reviewed)
    for ceiling in ceilings:
        grant = confine(ctx.catalogue, grant, ceiling)
    cut = _cut(ctx, spec, ceilings, reviewed)
    cut = Excess(tuple(sorted({*cut.events, *beyond.events})), cut.claude_tools)
    if not cut.is_empty and not spec.narrow:
        raise _exceeds(ctx, cut, _culprits(ctx, asked, cut))
    sessions = ctx.kernel.authority.fleet.sessions
    grant = sessions.narrowed(ctx.catalogue, grant, list(spec.bound))
    return Offer(grant, None if cut.is_empty else _told(ctx, asked, cut))


def _check_profile(ctx: Context, spec: AgentSpec, asked: AgentSpec) -> None:
    """A profile that the caller may not see is not there; nor are the variables of one."""
    if asked.profile or (asked.variables and spec.profile):
        look_up(spec.profile, visible_profiles(ctx, sight(ctx)), "profile")


def _cut(ctx: Context, spec: AgentSpec, ceilings: list[Grant], reviewed: frozenset[str]) -> Excess:
    """What an agent would hold beyond the ceilings, but for what only a pattern covers.

    INVARIANT: whether a pattern covers something that the giver does not hold changes nothing: it
    would tell that something is there.
    """
    exact = tuple(text for text in spec.additional_tools if not _is_wide(text))
    own, _ = _own(ctx, msgspec.structs.replace(spec, additional_tools=exact), ceilings, reviewed)
    kept = own
    for ceiling in ceilings:
        kept = confine(ctx.catalogue, kept, ceiling)
    return excess(own, kept)


def _is_wide(text: str) -> bool:
    pattern = ToolEntry.parse(text, REQUEST).pattern
    return pattern is not None and not pattern.exact


def _culprits(ctx: Context, asked: AgentSpec, cut: Excess) -> list[str]:
    """What the request itself names that brings the excess: its profile, capabilities and tools."""
    catalogue, found = ctx.catalogue, []
    events, tools, named = set(cut.events), set(cut.claude_tools), set(asked.additional_tools)
    profile = catalogue.grants.get(asked.profile)
    if profile is not None and (profile.events & events or profile.claude_tools & tools):
        found.append(asked.profile)
    for name, on in asked.capabilities.items():
        given = gives(catalogue, name) if on else {"events": [], "claude_tools": []}
        if events.intersection(given["events"]) or tools.intersection(given["claude_tools"]):
            found.append(name)
    return [*found, *(name for name in (*cut.events, *cut.claude_tools) if name in named)]


def _told(ctx: Context, asked: AgentSpec, cut: Excess) -> Excess:
    """What the caller hears of a cut: all of it, or what it named or holds itself."""
    if ctx.principal.is_operator:
        return cut
    known = ctx.grant.events | set(asked.additional_tools)
    return Excess(
        tuple(event for event in cut.events if event in known),
        tuple(tool for tool in cut.claude_tools if tool in known | ctx.grant.claude_tools),
    )


def _exceeds(ctx: Context, cut: Excess, culprits: list[str]) -> ExceedsParentError:
    listed = [*cut.events, *cut.claude_tools]
    hint = "ask for less, or accept the cut with on_excess: narrow"
    if ctx.principal.is_operator:
        return ExceedsParentError(
            f"the agent would hold {len(listed)} more than its parent: {', '.join(listed[:5])}",
            hint=hint,
            details={
                "excess": listed,
                "events": list(cut.events),
                "claude_tools": list(cut.claude_tools),
            },
        )
    which = f", by {', '.join(culprits[:5])}" if culprits else ""
    error = ExceedsParentError(
        f"the agent would hold more than its parent{which}",
        hint=hint,
        details={"excess": culprits},
    )
    error.withheld = withheld(listed)
    return error


def withheld(excess: list[str]) -> dict[str, Any]:
    """What the audit keeps of an excess; the caller hears only of what it named itself."""
    kept = {"excess": excess[:_MOST_KEPT]}
    more = len(excess) - _MOST_KEPT
    return kept | ({"more": more} if more > 0 else {})


def _ceilings(ctx: Context, parent: str | None) -> list[Grant]:
    found = [] if parent is None else [held_by(ctx, parent)]
    caller = ctx.principal.id
    if parent != caller and (not ctx.principal.is_operator or sessions_of(ctx)):
        found.append(held_by(ctx, caller))
    return found


def _own(
    ctx: Context, spec: AgentSpec, ceilings: list[Grant], reviewed: frozenset[str]
) -> tuple[Grant, Excess]:
    beyond = NO_EXCESS
    try:
        if ceilings and not ctx.principal.is_operator:
            check_denials(spec, ceilings[0])
            beyond = unheld(ctx.catalogue, spec, ceilings[0])
        if spec.inherit:
            return inherit(ctx.catalogue, spec, ceilings[0]), beyond
        own = resolve_agent(ctx.catalogue, spec, reviewed=reviewed)
        return ctx.kernel.authority.fleet.with_made(own, ctx.catalogue), beyond
    except RemitError as error:
        if error.code in {"invalid_pattern", "invalid_name", "invalid_definition"}:
            raise InvalidDataError(error.message, hint=error.hint) from error
        raise


def rights_behind(ctx: Context, spec: AgentSpec, parent: str | None) -> list[Any]:
    """What an agent would hold and start, for comparing: equal for as long as that is the same.

    Raises:
        RemitError: something in the spec cannot be used.
    """
    fleet, catalogue = ctx.kernel.authority.fleet, ctx.catalogue
    if spec.inherit:
        return [] if parent is None else rights_in(fleet.grant(parent, catalogue))
    own = fleet.with_made(resolve_agent(catalogue, spec), catalogue)
    launcher, started = ctx.kernel.find(Launcher), None
    if launcher is not None and wants_process(spec, own):
        started = msgspec.to_builtins(wanted(spec, own, catalogue, launcher.commands))
    return [*rights_in(own), started]


def rights_in(grant: Grant) -> list[Any]:
    """Everything that a grant lets its holder do, and what it is started with."""
    names = (grant.events, grant.claude_tools, grant.approval_required, grant.exposed, grant.pinned)
    return [
        *map(sorted, names),
        [str(pattern) for pattern in grant.denied],
        sorted(grant.denied_tools),
        grant.limits.to_json(),
        grant.capabilities,
        grant.pending_review,
        [grant.exposure, grant.prompt, grant.max_effect, grant.trusted],
        [grant.config, grant.variables],
        None if grant.launcher is None else msgspec.to_builtins(grant.launcher.launch),
    ]


def check_spec(spec: AgentSpec, parent: str | None) -> None:
    """Refuse what contradicts itself.

    Raises:
        InvalidDataError: `inherit` beside something that it makes meaningless.
    """
    if not spec.inherit:
        return
    if parent is None:
        raise InvalidDataError(
            "the operator's rights are not inherited",
            hint="name a profile",
            details={"path": "$.inherit"},
        )
    if spec.profile or spec.capabilities or spec.additional_tools or spec.variables:
        raise InvalidDataError(
            "an agent that inherits has all its parent holds; nothing can be added to that",
            hint="leave out inherit, or name only disallowed_tools and limits beside it",
            details={"path": "$.inherit"},
        )


def check_room(ctx: Context, parent: str | None) -> None:
    """Refuse one child too many, or one too deep.

    Raises:
        LimitError: a limit of the parent, or of one of its ancestors, is reached.
    """
    if parent is None:
        return
    fleet = ctx.kernel.authority.fleet
    most = held_by(ctx, parent).limits.max_children
    present = len(fleet.children(parent)) + ctx.kernel.keyring.arriving(parent)
    if most is not None and present >= most:
        raise LimitError(
            f"{parent!r} has {present} children, and {most} are its limit",
            hint="terminate one of them first",
            details={"limit": "max_children", "retry_after": 1.0},
        )
    line = [parent, *(one.id for one in fleet.ancestors(parent))]
    if len(line) > MAX_DEPTH:
        raise _too_deep(f"no tree of agents is deeper than {MAX_DEPTH}")
    for below, name in enumerate(line, start=1):
        deepest = held_by(ctx, name).limits.max_depth
        if deepest is not None and below > deepest:
            raise _too_deep(f"descendants of {name!r} may be {deepest} deep, this one is {below}")


def _too_deep(message: str) -> LimitError:
    return LimitError(
        message,
        hint="let an agent further up spawn it",
        details={"limit": "max_depth", "retry_after": None},
    )


def wants_process(spec: AgentSpec, grant: Grant) -> bool:
    """Tell whether an agent is to have a process."""
    if spec.launch is not None:
        return msgspec.convert(spec.launch, LaunchRequest) != NO_REQUEST
    placed = grant.launcher if spec.profile and spec.launches_profile else None
    return placed is not None and placed.launch != NO_LAUNCH


def wanted(spec: AgentSpec, grant: Grant, catalogue: Catalogue, commands: Commands) -> Launch:
    """The process that an agent is to have, before a ready launcher adds its arguments.

    INVARIANT: of what its request says, nothing gets into it but values that an operator bounded.

    Raises:
        DeniedError: the operator lists no such command.
        InvalidDataError: a value is not one that may be filled in.
        NotFoundError: nothing is to be started.
    """
    if spec.launch is not None:
        return commands.launch(msgspec.convert(spec.launch, LaunchRequest))
    placed = grant.launcher if spec.profile and spec.launches_profile else None
    if placed is None or placed.launch == NO_LAUNCH:
        raise NotFoundError(f"the profile {spec.profile!r} starts no process")
    declared = catalogue.variables.get(spec.profile, {})
    for name in sorted(placed.variables & spec.variables.keys()):
        if name not in declared or not declared[name].is_bounded:
            raise InvalidDataError(
                f"{name!r} cannot be set here: it reaches a command, and may be any text",
                hint=f"give {name!r} a pattern or allowed_values in the profile {spec.profile!r}",
                details={"path": f"$.variables.{name}"},
            )
    return placed.launch


def check_launch(
    launcher: Launcher | None,
    spec: AgentSpec,
    grant: Grant,
    catalogue: Catalogue,
    *,
    own_key: bool,
) -> AgentSpec:
    """Check what an agent that is about to be would start; answers its spec with that settled.

    Args:
        launcher: who starts processes here.
        spec: what it is to be spawned with.
        grant: what it will hold.
        catalogue: the definitions of its profile.
        own_key: whether it brings a key of its own.

    Raises:
        DeniedError: the operator does not allow the command.
        UnavailableError: the command is not installed.
        InvalidDataError: it cannot be started as asked.
        LimitError: too many processes run already.
    """
    if not wants_process(spec, grant):
        return msgspec.structs.replace(spec, launch=None, launches_profile=False)
    if launcher is None or own_key:
        raise InvalidDataError(
            "a process can only be launched with a key that this daemon makes",
            hint="leave public_key out, or start nothing with an empty launch",
            details={"path": "$.launch"},
        )
    launcher.check(wanted(spec, grant, catalogue, launcher.commands))
    return spec


def launch_of(
    authority: "Authority", commands: Commands, agent: str, identity: Mapping[str, str]
) -> Launch:
    """What to start for a living agent, from what it holds at this moment.

    Raises:
        NotFoundError: the agent is gone, or its profile starts nothing any more.
        DeniedError: the operator lists no such command any more.
        InvalidDataError: what it was spawned with may not be filled in any more.
    """
    found = authority.fleet.get(agent)
    if found is None:
        raise NotFoundError(f"there is no agent {agent!r}")
    grant = authority.fleet.grant(agent, authority.catalogue)
    launch = wanted(found.spec, grant, authority.catalogue, commands)
    if not launch.ready:
        return launch
    own = claude_options(authority.catalogue.universe, found, grant, identity)
    # The own arguments come first: a list option of the host would swallow a bare one behind it.
    return msgspec.structs.replace(
        launch, command=READY[launch.ready], ready="", args=(*launch.args, *own)
    )


def claude_options(
    universe: Universe, agent: Agent, grant: Grant, identity: Mapping[str, str]
) -> list[str]:
    """Arguments for the Claude command line that match what an agent holds.

    INVARIANT: everybody can list the arguments of a process, so `identity` holds ways to secrets
    and never a secret.
    """
    command, *before = own_command()
    server = ToolServer(command, (*before, "mcp", "--agent", agent.id), identity)
    spec = agent.spec
    texts = (grant.prompt if spec.profile else "", spec.system_prompt)
    prompt = "\n\n".join(text for text in texts if text)
    options = claude_arguments(universe, grant, server)
    # What a prompt begins with is for a request to say: never with an option of the host.
    prompt = f"\n{prompt}" if prompt.startswith("-") else prompt
    return [*options, "--append-system-prompt", prompt] if prompt else options
