"""Who is asking, the tokens that prove it, and who caused a change of the configuration.

Identity comes from the connection, never from a field of a message. An agent is a principal that
holds a grant and has at most one parent.
"""

from typing import Any, Literal

import msgspec

from remit.model.limits import NO_LIMITS, Limits
from remit.model.schema import Name

AgentStatus = Literal["active", "archived"]

OPERATOR_ID = "operator"
DAEMON_ID = "daemon"
"""Stands for what happens by itself; nobody who asks has this name."""
RESERVED = frozenset({OPERATOR_ID, DAEMON_ID})
"""Names that are given to nobody."""
ANYWHERE = ""
"""The audience of the token that an agent was spawned with."""
ID_LENGTH = 12


class Principal(msgspec.Struct, frozen=True):
    """An authenticated caller: the operator, or the holder of a key that was given a profile."""

    id: str
    kind: Literal["operator", "agent"] = "agent"
    profile: str = ""
    serial: int = 0
    """Tells two principals apart that had the same name one after the other."""

    @property
    def is_operator(self) -> bool:
        """Tell whether this caller may do everything."""
        return self.kind == "operator"


OPERATOR = Principal(OPERATOR_ID, "operator")


class Token(msgspec.Struct, frozen=True):
    """What is known of a token; it never expires when `expires_at` is None."""

    hash: str
    owner: str
    owner_key: str
    audience: str = ANYWHERE
    created_at: float = 0.0
    expires_at: float | None = None

    @property
    def id(self) -> str:
        """What people call it by; it tells nothing that would help to guess the token."""
        return self.hash[:ID_LENGTH]


class Bearer(msgspec.Struct, frozen=True):
    """Somebody who has shown a token that counts."""

    principal: Principal
    token: Token


class Cause(msgspec.Struct, frozen=True):
    """The cause of a revision: the reason, and who wanted it."""

    what: Literal[
        "files_edited",
        "signal",
        "requested",
        "started",
        "reviewed",
        "events_changed",
        "capability_made",
    ]
    by: str = DAEMON_ID
    decision: str = ""
    """The decision that let somebody ask for it."""


class CapabilityChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A capability of a list, with its configuration."""

    ref: Name
    config: dict[str, Any] = {}


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of an agent; everything here survives a restart."""

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
