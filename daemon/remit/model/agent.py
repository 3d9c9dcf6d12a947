"""An agent: a principal that holds a grant and has at most one parent."""

from typing import Any, Literal

import msgspec

from remit.model.fields import Name
from remit.model.limits import NO_LIMITS, Limits

AgentStatus = Literal["active", "archived"]


class Chosen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A capability of a list, with its configuration."""

    ref: Name
    config: dict[str, Any] = {}


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent was spawned with; everything here survives a restart."""

    profile: str = ""
    """Empty: only what is always included, or what the parent holds when `inherit` is set."""
    inherit: bool = False
    capabilities: dict[str, bool] = {}
    """In the order in which they were given: earlier ones come first in its prompt."""
    configs: dict[str, dict[str, Any]] = {}
    """The configuration of those that were given one."""
    additional_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    variables: dict[str, Any] = {}
    name: str = ""
    """For people; the id is what counts."""
    system_prompt: str = ""
    status: AgentStatus = "active"
    """One that is archived holds nothing, and neither do those below it."""
    session: str | None = None
    bound: dict[str, str] = {}
    """The sessions that narrow all it does, by their id, with their names; one that is gone leaves
    it nothing."""
    narrow: bool = False
    """Whether excess over the parent was accepted to be cut; it then stays cut for good."""
    limits: Limits = NO_LIMITS
    launch: dict[str, Any] | None = None
    """The process that the request asked for; it takes the place of the profile's."""
    launches_profile: bool = False
    """Whether what the profile starts was started, and is to be started again."""
    parent_key: str = ""
    """The key that the parent had: a later principal of the same name is not the parent."""

    @property
    def is_changed(self) -> bool:
        """Tell whether this differs from its profile alone."""
        return bool(
            self.capabilities
            or self.additional_tools
            or self.disallowed_tools
            or self.variables
            or self.limits != NO_LIMITS
        )

    @property
    def session_names(self) -> list[str]:
        """The names of the sessions that bind it, sorted."""
        return sorted(set(self.bound.values()))

    @property
    def rights(self) -> str:
        """Equal for two agents whose own rights are equal in every revision."""
        if not self.is_changed:
            return self.profile
        flags = (sorted(self.capabilities.items()), sorted(self.configs.items()))
        lists = (self.additional_tools, self.disallowed_tools)
        return repr((self.profile, *flags, *lists, self.variables, self.limits))

    @property
    def chosen(self) -> list[str | dict[str, Any]]:
        """The capabilities that are switched on, in order; with their configuration, if any."""
        return [
            {"ref": name, "config": self.configs[name]} if name in self.configs else name
            for name, on in self.capabilities.items()
            if on
        ]

    @property
    def switched_off(self) -> list[str]:
        """The capabilities that are switched off, sorted."""
        return sorted(name for name, on in self.capabilities.items() if not on)


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One living agent."""

    id: str
    parent: str | None = None
    position: int = 0
    public_key: str = ""
    token_hash: str = ""
    created_at: float = 0.0
    spec: AgentSpec = AgentSpec()
