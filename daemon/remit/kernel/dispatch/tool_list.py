"""The tools of a holder as models and their hosts are told about them, with what that costs."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from remit.model.descriptor import CALL_TOOL, META_TOOL, call_tool, meta_tool
from remit.model.event import SEARCH, EventSpec
from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue
from remit.policy.tool_names import held_back, names_for
from remit.text.words import token_weight, tokens_in


class ToolParts(msgspec.Struct, frozen=True):
    """The description of a handler in a tool list, all but its name and whether it is pinned.

    Made once for each handler: a host asks for its list after every change, and for each turn.
    """

    told: Mapping[str, Any]
    """For the model."""
    hints: Mapping[str, Any]
    """For its host."""
    weight: int
    """Of `told` with an empty name; the hints are sent to no model."""
    thin_weight: int


class Documented(Protocol):
    """The documentation of a handler: its event, texts and schemas."""

    @property
    def spec(self) -> EventSpec:
        """Its event and flags."""

    @property
    def module(self) -> str:
        """The module it stands in."""

    @property
    def description(self) -> str:
        """Its docstring without the sections about arguments."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of requests."""

    @property
    def answer_schema(self) -> dict[str, Any]:
        """The JSON Schema of answers; empty when nobody said."""

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of what a tool of this event gives to programs; empty: unknown."""

    @property
    def tool_parts(self) -> ToolParts:
        """What a tool list says about it."""


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
    """The events that are tools of a holder, sorted; without those that wait for a review."""
    hidden = held_back(catalogue.universe, grant.exposed)
    return sorted(
        event
        for event in grant.exposed
        if event in handlers and event not in hidden and not handlers[event].spec.pushed
    )


def model_tools(
    handlers: Mapping[str, Documented], events: Iterable[str], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Tools as a model is told about them, without what only hosts look at."""
    return [{"name": names[event], **handlers[event].tool_parts.told} for event in events]


def tool_entry(handler: Documented, name: str, *, pinned: bool = False) -> dict[str, Any]:
    """A tool with all that hosts look at."""
    parts = handler.tool_parts
    return {"name": name, **parts.told, **parts.hints, "pinned": pinned}


def tool_list(
    handlers: Mapping[str, Documented],
    catalogue: Catalogue,
    grant: Grant,
    *,
    names: Mapping[str, str] | None = None,
    thin: bool = False,
    only: Container[str] | None = None,
) -> dict[str, Any]:
    """The tools of a holder with their token bill; thin ones come without schema.

    Args:
        handlers: what answers the events.
        catalogue: the definitions in force.
        grant: what the holder has.
        names: what its tools are called; absent: as one is shown them who was shown none before.
        thin: leave the schemas out.
        only: narrows what is sent; the full dump stays that of everything the holder has.
    """
    events = shown_tools(handlers, catalogue, grant)
    if names is None:
        names = names_for(catalogue.universe, events)
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
        tools = [tool_entry(handlers[e], names[e], pinned=e in pinned) for e in events]
    return {
        "exposure": grant.exposure,
        "searchable": SEARCH in grant.events,
        "tools": tools,
        "tokens": {"sent": bill, "full_dump": full_dump},
        "revision": catalogue.revision,
    }


def host_tools(listed: Mapping[str, Any], found: Iterable[str] = ()) -> list[dict[str, Any]]:
    """What the host of a holder lists: all of its tools, or a few and the ways to the others.

    Args:
        listed: what `tool_list` answered, with schemas.
        found: the events of the last search, for the exposure `turn`.
    """
    tools, searchable = listed["tools"], listed["searchable"]
    search = [_door_tool(meta_tool(), SEARCH, read_only=True)] if searchable else []
    if listed["exposure"] == "all" or not searchable:  # without a search nothing would be found
        return [*tools, *search]
    shown = [tool for tool in tools if tool["pinned"]]
    if listed["exposure"] == "turn":
        others = {tool["event"]: tool for tool in tools if not tool["pinned"]}
        return [*shown, *(others[event] for event in found if event in others), *search]
    return [*shown, *search, _door_tool(call_tool(), "", read_only=False)]


def host_tokens(listed: Mapping[str, Any], found: Iterable[str] = ()) -> int:
    """The tokens of what the host of a holder lists; the arguments are those of `host_tools`."""
    shown = host_tools(listed, found)
    if len(shown) < len(listed["tools"]):
        return weigh(shown)
    doors = [tool for tool in shown if tool["name"] in (META_TOOL, CALL_TOOL)]
    sent: int = listed["tokens"]["sent"]
    return sent + (weigh(doors) if doors else 0)


def thinned(tools: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tools without their schemas, and with one line of what they say."""
    return [
        {"name": one["name"], "event": one["event"], "description": _first_line(one)}
        for one in tools
    ]


def _first_line(tool: Mapping[str, Any]) -> str:
    return str(tool["description"].partition("\n")[0])


_TOLD = ("name", "event", "description", "input_schema")


def weigh(tools: Iterable[Mapping[str, Any]]) -> int:
    """The tokens of tools as a model is told about them."""
    told = [{key: tool[key] for key in _TOLD if key in tool} for tool in tools]
    return _bill([("", _weight(tool)) for tool in told])


def _door_tool(definition: Mapping[str, Any], event: str, *, read_only: bool) -> dict[str, Any]:
    hints = {"readOnlyHint": read_only, "openWorldHint": not read_only}
    return {"event": event, **definition, "annotations": hints, "content": False, "pinned": True}


def _bill(tools: Sequence[tuple[str, int]]) -> int:
    """The tokens of a list of tools, as JSON, from the weights that they have without names."""
    brackets_and_commas = 2 + max(0, len(tools) - 1)
    plain = brackets_and_commas + sum(len(name) for name, _ in tools)
    return tokens_in(sum(weight for _, weight in tools) + token_weight("x") * plain)
