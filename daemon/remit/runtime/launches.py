"""What to start for an agent now: what its request said, else what its profile says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from remit.errors import InvalidDataError, NotFoundError
from remit.model.agent import Agent, AgentSpec
from remit.model.grant import Grant
from remit.model.launch import NOTHING, READY, Launch
from remit.policy.host_arguments import Server, claude_arguments
from remit.policy.universe import Universe
from remit.runtime.own_command import own_command

if TYPE_CHECKING:
    from remit.runtime.authority import Authority
    from remit.runtime.launcher import Launcher


def wanted(spec: AgentSpec, grant: Grant) -> Launch:
    """The process that an agent is to have, before a ready launcher adds its arguments."""
    if spec.launch is not None:
        return msgspec.convert(spec.launch, Launch)
    placed = grant.launcher if spec.profile and spec.launches_profile else None
    return NOTHING if placed is None else placed.launch


def check_launch(
    launcher: "Launcher | None", spec: AgentSpec, grant: Grant, *, own_key: bool
) -> AgentSpec:
    """Check what an agent that is about to be would start; answers its spec with that settled.

    Args:
        launcher: who starts processes here.
        spec: what it is to be spawned with.
        grant: what it will hold.
        own_key: whether it brings a key of its own.

    Raises:
        DeniedError: the operator does not allow the command.
        InvalidDataError: it cannot be started as asked.
        LimitError: too many processes run already.
    """
    launch = wanted(spec, grant)
    if launch == NOTHING:
        return msgspec.structs.replace(spec, launch=None, launches_profile=False)
    if launcher is None or own_key:
        raise InvalidDataError(
            "a process can only be launched with a key that this daemon makes",
            hint="leave public_key out, or start nothing with an empty launch",
            details={"path": "$.launch"},
        )
    launcher.check(launch)
    return spec


def launch_of(authority: "Authority", agent: str, identity: Mapping[str, str]) -> Launch:
    """What to start for a living agent, from what it holds at this moment.

    Raises:
        NotFoundError: the agent is gone, or its profile starts nothing any more.
    """
    found = authority.fleet.get(agent)
    if found is None:
        raise NotFoundError(f"there is no agent {agent!r}")
    grant = authority.fleet.grant(agent, authority.catalogue)
    launch = wanted(found.spec, grant)
    if not launch.starts:
        raise NotFoundError(f"the profile {found.spec.profile!r} starts no process")
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
    server = Server(command, (*before, "mcp", "--agent", agent.id), identity)
    spec = agent.spec
    texts = (grant.prompt if spec.profile else "", spec.system_prompt)
    prompt = "\n\n".join(text for text in texts if text)
    options = claude_arguments(universe, grant, server)
    return [*options, "--append-system-prompt", prompt] if prompt else options
