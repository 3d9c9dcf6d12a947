"""An agent: a principal that holds a grant and has at most one parent."""

from typing import Any

import msgspec

from remit.model.limits import NO_LIMITS, Limits


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent was spawned with; everything here survives a restart."""

    profile: str = ""
    """Empty: only what is always included, or what the parent holds when `inherit` is set."""
    inherit: bool = False
    capabilities: dict[str, bool] = {}
    additional_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    variables: dict[str, Any] = {}
    system_prompt: str = ""
    session: str | None = None
    narrow: bool = False
    """Whether excess over the parent was accepted to be cut; it then stays cut for good."""
    limits: Limits = NO_LIMITS
    launch: dict[str, Any] | None = None
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
    def rights(self) -> str:
        """Equal for two agents whose own rights are equal in every revision."""
        if not self.is_changed:
            return self.profile
        changes = (self.capabilities, self.additional_tools, self.disallowed_tools)
        return repr((self.profile, *changes, self.variables, self.limits))


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One living agent."""

    id: str
    parent: str | None = None
    position: int = 0
    public_key: str = ""
    token_hash: str = ""
    created_at: float = 0.0
    spec: AgentSpec = AgentSpec()
