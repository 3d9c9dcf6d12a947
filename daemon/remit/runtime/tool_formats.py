"""Tool definitions in the shapes that model interfaces take: Anthropic, OpenAI, MCP.

Tools may be *deferred*: the model does not see them until a search names them. The search is ours,
`discover_capabilities`, and runs where the agent runs; so what is found follows the grant.
The shapes fit the types of anthropic 2.10 and openai 3.51.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

from remit.model.descriptor import tool_id
from remit.model.meta_tool import META_TOOL, meta_tool

ToolFormat = Literal["anthropic", "openai", "mcp"]
TOOL_FORMATS: tuple[ToolFormat, ...] = get_args(ToolFormat)
SearchFormat = Literal["anthropic", "openai"]
SEARCH_FORMATS: tuple[SearchFormat, ...] = get_args(SearchFormat)
Tool = Mapping[str, Any]
"""A tool of `tool_list`."""

_UNTAKEN = frozenset({"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"})
"""What both vendors refuse at the top of a schema; the daemon checks the whole schema anyway."""
_MCP_NAMES = {
    "title": "title",
    "description": "description",
    "input_schema": "inputSchema",
    "output_schema": "outputSchema",
    "annotations": "annotations",
}

_NOTHING = {"type": "text", "text": "Nothing else fits; say it in other words."}


def formatted(tools: Iterable[Tool], form: ToolFormat, *, defer: bool = False) -> list[Any]:
    """Tools in the shape of an interface; with `defer`, all but the pinned ones wait for a search.

    INVARIANT: the tool to search with is never deferred, and no other tool has its name.
    """
    if form == "mcp":
        return [_mcp(tool) for tool in tools]
    make = _SHAPES[form]
    if not defer:
        return [make(tool) for tool in tools]
    listed = [tool for tool in tools if tool["name"] != META_TOOL]
    shaped = [
        make(tool) if tool.get("pinned") else make(tool) | {"defer_loading": True}
        for tool in listed
    ]
    return [_SEARCHES[form](), *shaped]


def found(tools: Iterable[Tool], ids: Iterable[str], form: SearchFormat) -> dict[str, Any]:
    """What a search answers to a model that waits for it, best first; the id of the call is added.

    Anthropic takes the names of deferred tools of the request, OpenAI takes whole definitions.
    What is pinned was never deferred, so the model has it already.
    """
    waiting = {tool_id(tool["event"]): tool for tool in tools if not tool.get("pinned")}
    hits = [waiting[one] for one in ids if one in waiting]
    if form == "openai":
        loaded = [_openai(tool) | {"defer_loading": True} for tool in hits]
        told = {"type": "tool_search_output", "execution": "client", "status": "completed"}
        return {**told, "tools": loaded}
    named = [{"type": "tool_reference", "tool_name": tool["name"]} for tool in hits]
    return {"type": "tool_result", "content": named or [_NOTHING]}


def _anthropic(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "description": tool["description"],
        "input_schema": _object(tool["input_schema"]),
    }


def _openai(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool["name"],
        "description": tool["description"],
        "parameters": _object(tool["input_schema"]),
        # Strict is its default, and refuses every schema with a field that may be left out.
        "strict": False,
    }


def _mcp(tool: Tool) -> dict[str, Any]:
    named = {theirs: tool[ours] for ours, theirs in _MCP_NAMES.items() if ours in tool}
    schema = {"type": "object", **tool["input_schema"]}  # hosts want one even without fields
    return {"name": tool["name"], **named, "inputSchema": schema}


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as both vendors take it: an object, with nothing to choose from at its top."""
    kept = {key: value for key, value in schema.items() if key not in _UNTAKEN}
    return {**kept, "type": "object", "properties": kept.get("properties", {})}


def _anthropic_search() -> dict[str, Any]:
    return _anthropic(meta_tool())


def _openai_search() -> dict[str, Any]:
    tool = meta_tool()
    return {
        "type": "tool_search",
        "execution": "client",
        "description": tool["description"],
        "parameters": tool["input_schema"],
    }


_SHAPES: dict[str, Callable[[Tool], dict[str, Any]]] = {"anthropic": _anthropic, "openai": _openai}
_SEARCHES: dict[str, Callable[[], dict[str, Any]]] = {
    "anthropic": _anthropic_search,
    "openai": _openai_search,
}
