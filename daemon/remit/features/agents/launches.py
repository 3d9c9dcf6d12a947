"""What to start for an agent now: what its request said, else what its profile says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from remit.config.definitions.launchers import Commands
from remit.errors import InvalidDataError, NotFoundError
from remit.features.tools.formats import ToolServer, claude_arguments
from remit.kernel.processes.guard import own_command
from remit.model.agent import NO_LAUNCH, NO_REQUEST, READY, Agent, AgentSpec, Launch, LaunchRequest
from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue
from remit.policy.universe import Universe

if TYPE_CHECKING:
    from remit.features.agents.launcher import Launcher
    from remit.kernel.authority.revision import Authority


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
    launcher: "Launcher | None",
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
