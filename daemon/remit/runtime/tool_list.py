"""The tools of a holder as models and their hosts are told about them, with what that costs."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec

from remit.model.event import EventSpec
from remit.model.exposure import SEARCH
from remit.model.grant import Grant
from remit.model.tokens import token_weight, tokens_in
from remit.policy.catalogue import Catalogue
from remit.policy.toolnames import tool_names
from remit.runtime.documented import Documented, ToolParts


def tool_parts(handler: Documented) -> ToolParts:
    """Work out what a tool list says about a handler; `Handler.tool_parts` keeps it."""
    spec = handler.spec
    told = {
        "event": spec.name,
        "description": handler.description,
        "input_schema": handler.input_schema,
    }
    hints: dict[str, Any] = {"title": spec.title} if spec.title else {}
    if _can_be_checked(handler.output_schema):
        hints["output_schema"] = handler.output_schema
    hints["annotations"] = {
        "readOnlyHint": spec.effect == "read",
        # An effect that nobody stated is taken for the worst, as hosts do without the hint.
        "destructiveHint": spec.effect not in ("read", "write"),
        "openWorldHint": spec.open_world,
    }
    hints["content"] = spec.content
    return ToolParts(told, hints, _weight({"name": "", **told}), _weight(_thin(spec, "")))


def _can_be_checked(schema: Mapping[str, Any]) -> bool:
    """Hosts take only objects as structured output; an object of anything tells them nothing."""
    says = schema.get("properties") or isinstance(schema.get("additionalProperties"), Mapping)
    return schema.get("type") == "object" and bool(says)


def _thin(spec: EventSpec, name: str) -> dict[str, Any]:
    return {"name": name, "event": spec.name, "description": spec.summary}


def _weight(tool: Mapping[str, Any]) -> int:
    return token_weight(msgspec.json.encode(tool).decode())


def shown_tools(
    handlers: Mapping[str, Documented], catalogue: Catalogue, grant: Grant
) -> list[str]:
    """The events that are tools of a holder, sorted."""
    names = tool_names(catalogue.universe)
    return sorted(event for event in grant.exposed if event in names and event in handlers)


def model_tools(
    handlers: Mapping[str, Documented], catalogue: Catalogue, grant: Grant
) -> list[dict[str, Any]]:
    """The tools of a holder as a model is told about them, without what only hosts look at."""
    names = tool_names(catalogue.universe)
    events = shown_tools(handlers, catalogue, grant)
    return [{"name": names[event], **handlers[event].tool_parts.told} for event in events]


def tool_list(
    handlers: Mapping[str, Documented],
    catalogue: Catalogue,
    grant: Grant,
    *,
    thin: bool = False,
    only: Container[str] | None = None,
) -> dict[str, Any]:
    """The tools of a holder with their token bill; thin ones come without schema.

    `only` narrows what is sent; the full dump stays that of everything the holder has.
    """
    names = tool_names(catalogue.universe)
    events = shown_tools(handlers, catalogue, grant)
    parts = {event: handlers[event].tool_parts for event in events}
    full_dump = bill = _bill([(names[event], parts[event].weight) for event in events])
    if only is not None:
        events = [event for event in events if event in only]
        bill = _bill([(names[event], parts[event].weight) for event in events])
    if thin:
        tools = [_thin(handlers[event].spec, names[event]) for event in events]
        bill = _bill([(names[event], parts[event].thin_weight) for event in events])
    else:
        pinned = grant.pinned
        tools = [
            {"name": names[e], **parts[e].told, **parts[e].hints, "pinned": e in pinned}
            for e in events
        ]
    tokens = {"sent": bill, "full_dump": full_dump}
    searchable = SEARCH in grant.events
    return {
        "exposure": grant.exposure,
        "searchable": searchable,
        "tools": tools,
        "tokens": tokens,
    }


def _bill(tools: Sequence[tuple[str, int]]) -> int:
    """The tokens of a list of tools, as JSON, from the weights that they have without names."""
    brackets_and_commas = 2 + max(0, len(tools) - 1)
    plain = brackets_and_commas + sum(len(name) for name, _ in tools)
    return tokens_in(sum(weight for _, weight in tools) + token_weight("x") * plain)
