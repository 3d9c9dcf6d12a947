"""The shapes of bodies, for the document that describes this API.

They describe; they do not decide. What an event takes is checked by the event itself, and where it
has a type of its own, that is the one that is described.
"""

from typing import Any

import msgspec

from remit.handlers.agent import SpawnRequest, UpdateRequest
from remit.handlers.capability_making import CreateRequest
from remit.model.agent import Chosen


def _as_resource(kind: type[msgspec.Struct], name: str, **named: str | None) -> Any:
    """The type of an event's request with other names for fields; None leaves one out."""
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        shown = named.get(field.name, field.name)
        if shown is None:
            continue
        if field.required:
            fields.append((shown, field.type))
        elif field.default is not msgspec.NODEFAULT:
            fields.append((shown, field.type, field.default))
        else:
            factory = msgspec.field(default_factory=field.default_factory)
            fields.append((shown, field.type, factory))
    made = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    made.__doc__ = kind.__doc__
    return made


AgentCreate = _as_resource(SpawnRequest, "AgentCreate", agent_id="id")
AgentPatch = _as_resource(UpdateRequest, "AgentPatch", agent_id=None)
CapabilityCreate = CreateRequest


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent; further fields are those of the answer of agent:status."""

    id: str
    status: str
    parent: str | None
    profile: str
    name: str
    system_prompt: str
    capabilities: list[str | Chosen]
    allowed_events: list[str]
    allowed_claude_tools: list[str]
    limits: dict[str, Any]
    created_at: float


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What a new agent shows at the door; nobody can be told them again."""

    public_key: str
    secret_key: str | msgspec.UnsetType = msgspec.UNSET
    token: str | msgspec.UnsetType = msgspec.UNSET


class NewAgent(Agent, frozen=True, kw_only=True):
    """An agent that was just made."""

    credentials: Credentials
    warnings: list[dict[str, str]] = []
    """What it was given that works differently from what one may think."""


class AgentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An agent in a list; further fields are those of agent:list."""

    id: str
    name: str
    status: str
    parent: str | None
    profile: str
    created_at: float


class AgentPage(msgspec.Struct, frozen=True):
    """Some agents; `next` is the `after` of the next page, or null at the end."""

    items: list[AgentSummary]
    total: int
    next: str | None


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """A capability; one alone also tells its events, tools, requires and limits."""

    id: str
    name: str
    description: str
    status: str
    icon: str | msgspec.UnsetType = msgspec.UNSET
    category: str | msgspec.UnsetType = msgspec.UNSET


class CapabilityPage(msgspec.Struct, frozen=True):
    """Some capabilities by name; `next` is the `after` of the next page, or null at the end."""

    items: list[Capability]
    total: int
    next: str | None


class Ended(msgspec.Struct, frozen=True):
    """Who was ended."""

    id: str
    terminated: list[str]


class Check(msgspec.Struct, frozen=True):
    """Which events are asked about, and for which agent; absent: the caller itself."""

    events: list[str]
    agent: str | msgspec.UnsetType = msgspec.UNSET


class CheckResult(msgspec.Struct, frozen=True):
    """May it, and why."""

    event: str
    allowed: bool
    reason: str


class Checked(msgspec.Struct, frozen=True):
    """The results, in the order in which they were asked."""

    results: list[CheckResult]
    revision: int


class Alive(msgspec.Struct, frozen=True):
    """The loop runs."""

    status: str


class Ready(msgspec.Struct, frozen=True):
    """Whether requests are served as they should be, and what is in the way."""

    status: str
    problems: list[str]
