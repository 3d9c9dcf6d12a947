"""The HTTP API as a table: each row is one operation, and names the function that serves it.

Routes, the OpenAPI document, the page of operations and the reference are all held to `OPERATIONS`.
"""

from http import HTTPStatus
from typing import Any

import msgspec

from remit.faces.http import endpoints
from remit.faces.http.openapi import EventBody, Operation, QueryParameter, shape
from remit.model.principal import CapabilityChoice


@shape("Agent")
class AgentShape(msgspec.Struct, frozen=True, kw_only=True):
    """An agent; further fields are those of the answer of agent:status."""

    id: str
    status: str
    parent: str | None
    profile: str
    name: str
    system_prompt: str
    capabilities: list[str | CapabilityChoice]
    allowed_events: list[str]
    allowed_claude_tools: list[str]
    limits: dict[str, Any]
    created_at: float


@shape("Credentials")
class CredentialsShape(msgspec.Struct, frozen=True, kw_only=True):
    """What a new agent shows at the door; nobody can be told them again."""

    public_key: str
    secret_key: str | msgspec.UnsetType = msgspec.UNSET
    token: str | msgspec.UnsetType = msgspec.UNSET


@shape("NewAgent")
class NewAgentShape(AgentShape, frozen=True, kw_only=True):
    """An agent that was just made."""

    credentials: CredentialsShape
    warnings: list[dict[str, str]] = []
    """What it was given that works differently from what one may think."""


@shape("AgentSummary")
class AgentSummaryShape(msgspec.Struct, frozen=True, kw_only=True):
    """An agent in a list; further fields are those of agent:list."""

    id: str
    name: str
    status: str
    parent: str | None
    profile: str
    created_at: float


@shape("AgentPage")
class AgentPageShape(msgspec.Struct, frozen=True):
    """Some agents; `next` is the `after` of the next page, or null at the end."""

    items: list[AgentSummaryShape]
    total: int
    next: str | None


@shape("Ended")
class TerminationShape(msgspec.Struct, frozen=True):
    """Who was ended."""

    id: str
    terminated: list[str]


@shape("Capability")
class CapabilityShape(msgspec.Struct, frozen=True, kw_only=True):
    """A capability; one alone also tells its events, tools, requires and limits."""

    id: str
    name: str
    description: str
    status: str
    icon: str | msgspec.UnsetType = msgspec.UNSET
    category: str | msgspec.UnsetType = msgspec.UNSET


@shape("CapabilityPage")
class CapabilityPageShape(msgspec.Struct, frozen=True):
    """Some capabilities by name; `next` is the `after` of the next page, or null at the end."""

    items: list[CapabilityShape]
    total: int
    next: str | None


@shape("Check")
class CheckShape(msgspec.Struct, frozen=True):
    """Which events are asked about, and for which agent; absent: the caller itself."""

    events: list[str]
    agent: str | msgspec.UnsetType = msgspec.UNSET


@shape("CheckResult")
class CheckResultShape(msgspec.Struct, frozen=True):
    """May it, and why."""

    event: str
    allowed: bool
    reason: str


@shape("Checked")
class CheckResultsShape(msgspec.Struct, frozen=True):
    """The results, in the order in which they were asked."""

    results: list[CheckResultShape]
    revision: int


@shape("Alive")
class LivenessShape(msgspec.Struct, frozen=True):
    """The loop runs."""

    status: str


@shape("Ready")
class ReadinessShape(msgspec.Struct, frozen=True):
    """Whether requests are served as they should be, and what is in the way."""

    status: str
    problems: list[str]


_COMMON = (400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504)
"""The statuses of what any event may answer instead."""
_WITH_BODY = (*_COMMON, 408, 415)
_PAGE = (
    QueryParameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "how many at the most"
    ),
    QueryParameter("after", {"type": "string"}, "the `next` of the page before"),
)
_TEXTS = {"type": "array", "items": {"type": "string"}}

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/capabilities",
        name="list_capabilities",
        event="capability:list",
        summary="List the capabilities whose events you may use.",
        serve=endpoints.show_page,
        query=_PAGE,
        answer=CapabilityPageShape,
        is_tagged=True,
        problems=_COMMON,
    ),
    Operation(
        method="POST",
        path="/v1/capabilities",
        name="create_capability",
        event="capability:create",
        summary="Make a declarative capability out of what you hold.",
        serve=endpoints.translate,
        body=EventBody(),
        answer=dict[str, Any],
        status=HTTPStatus.CREATED,
        problems=_WITH_BODY,
    ),
    Operation(
        method="GET",
        path="/v1/capabilities/{id}",
        name="get_capability",
        event="capability:get",
        summary="Tell everything about one capability.",
        serve=endpoints.show,
        answer=CapabilityShape,
        is_tagged=True,
        problems=_COMMON,
    ),
    Operation(
        method="POST",
        path="/v1/check",
        name="check",
        event="permission:check_many",
        summary="Tell of many events at once whether they may be used.",
        serve=endpoints.translate,
        body=CheckShape,
        answer=CheckResultsShape,
        problems=_WITH_BODY,
    ),
    Operation(
        method="POST",
        path="/v1/events/{event}",
        name="call_event",
        event="any",
        summary="Call any event; the body is its data, and the answer what it answers.",
        serve=endpoints.call_event,
        body=dict[str, Any],
        answer=Any,
        problems=_WITH_BODY,
    ),
    Operation(
        method="GET",
        path="/v1/stream",
        name="stream",
        event="event:subscribe",
        summary="Hear of events as they happen and as far as you may see them.",
        serve=endpoints.stream,
        query=(
            QueryParameter(
                "pattern",
                _TEXTS,
                "event names, or prefixes that end in `*`; absent: all that you may see",
            ),
            QueryParameter("channel", _TEXTS, "channels to listen to; needs message:subscribe"),
        ),
        answer=endpoints.EVENT_STREAM,
        problems=_COMMON,
    ),
    Operation(
        method="GET",
        path="/v1/agents",
        name="list_agents",
        event="agent:list",
        summary="List yourself and your descendants in the order in which they came.",
        serve=endpoints.list_agents,
        query=_PAGE,
        answer=AgentPageShape,
        is_tagged=True,
        problems=_COMMON,
    ),
    Operation(
        method="POST",
        path="/v1/agents",
        name="create_agent",
        event="agent:spawn",
        summary="Create an agent under yourself, with no more than you hold.",
        serve=endpoints.create_agent,
        body=EventBody("AgentCreate", {"agent_id": "id"}),
        answer=NewAgentShape,
        status=HTTPStatus.CREATED,
        problems=_WITH_BODY,
    ),
    Operation(
        method="GET",
        path="/v1/agents/{id}",
        name="get_agent",
        event="agent:status",
        summary="Show one of your descendants, or yourself.",
        serve=endpoints.show_agent,
        answer=AgentShape,
        is_tagged=True,
        problems=_COMMON,
    ),
    Operation(
        method="PATCH",
        path="/v1/agents/{id}",
        name="update_agent",
        event="agent:update",
        summary="Change one of your descendants; a list takes the place of the one before.",
        serve=endpoints.update_agent,
        body=EventBody("AgentPatch", {"agent_id": None}),
        answer=AgentShape,
        problems=_WITH_BODY,
    ),
    Operation(
        method="DELETE",
        path="/v1/agents/{id}",
        name="delete_agent",
        event="agent:terminate",
        summary="End an agent and all its descendants: they are shut out at once.",
        serve=endpoints.delete_agent,
        answer=TerminationShape,
        problems=_COMMON,
    ),
    Operation(
        method="GET",
        path="/healthz",
        name="healthz",
        summary="Tell whether the loop is alive.",
        serve=endpoints.healthz,
        answer=LivenessShape,
        problems=(500,),
    ),
    Operation(
        method="GET",
        path="/readyz",
        name="readyz",
        summary="Tell whether the definitions are valid and the store is open.",
        serve=endpoints.readyz,
        answer=ReadinessShape,
        problems=(500, 503),
    ),
    Operation(
        method="GET",
        path="/metrics",
        name="metrics",
        event="system:stats",
        summary="Count for Prometheus; events by name only with a token that may see them.",
        serve=endpoints.metrics,
        answer="text/plain",
        problems=(401, 403, 429, 500, 503, 504),
    ),
)
