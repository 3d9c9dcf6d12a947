"""Events described for readers of different patience, and tools in the shapes of model interfaces.

The interfaces are those of Anthropic, OpenAI and MCP; the shapes fit the types of anthropic 2.10
and openai 3.51. Tools may be *deferred*: the model does not see them until a search names them. The
search is ours, `discover_capabilities`, and runs where the agent runs; so what is found follows the
grant.

Arguments make the host of a model offer what a grant allows, and nothing else. Files make it start
our tools, in the form that each host reads: code.claude.com/docs/en/mcp, cursor.com/docs/mcp and
code.visualstudio.com/docs/copilot/reference/mcp-configuration in November 2026. Nothing in them is
a secret: a token is named by the variable or the question that holds it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from remit.kernel.dispatch.tool_list import Documented
from remit.model.descriptor import CALL_TOOL, META_TOOL, meta_tool, tool_id
from remit.model.event import SEARCH, Universe
from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue
from remit.policy.queries import givers_of
from remit.policy.tool_names import held_back, names_for

TextFormat = Literal["verbose", "compact", "ultra_compact", "mcp"]

_EXAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "array": [],
    "object": {},
}
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

SERVER_NAME = "remit"
"""Whoever holds it is given the tool to search with."""
Host = Literal["claude-code", "claude-desktop", "vscode", "cursor"]
HOSTS: tuple[Host, ...] = get_args(Host)
TOKEN_VARIABLE = "REMIT_TOKEN"  # noqa: S105 - the name of a variable
_TOKEN_INPUT = "remit-token"  # noqa: S105 - what VS Code calls its question
FILES: dict[Host, str] = {
    "claude-code": ".mcp.json",
    "claude-desktop": "claude_desktop_config.json",
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
}
"""What each host reads: from the folder of the project, or Claude Desktop from its own."""


def describe_event(handler: Documented, catalogue: Catalogue, grant: Grant) -> dict[str, Any]:
    """Everything a caller needs to use an event well."""
    spec = handler.spec
    held = set(grant.capabilities)
    return {
        "event": spec.name,
        "summary": spec.summary,
        "description": handler.description,
        "parameters": parameters(handler),
        "example": example(handler),
        "capabilities": [name for name in givers_of(catalogue, spec.name) if name in held],
        "flags": _flags(handler),
        "triggers": [event for event in spec.triggers if event in grant.events],
        "answer": handler.answer_schema,
    }


def _flags(handler: Documented) -> dict[str, Any]:
    spec = handler.spec
    return {
        "effect": spec.effect,
        "requires_auth": spec.requires_auth,
        "resource_intensive": spec.resource_intensive,
        "open_world": spec.open_world,
        "wildcard": spec.wildcard,
        "pushed": spec.pushed,
        "timeout": spec.timeout,
        "since": spec.since,
        "aliases": list(spec.aliases),
        "deprecated": spec.deprecated,
    }


def parameters(handler: Documented) -> list[dict[str, Any]]:
    """The fields of a request, in the order in which they are declared."""
    schema = handler.input_schema
    required = set(schema.get("required", ()))
    found = []
    for name, field in _fields(schema).items():
        entry = {
            "name": name,
            "type": _type_name(field),
            "required": name in required,
            "description": field.get("description", ""),
        }
        if "default" in field:
            entry["default"] = field["default"]
        found.append(entry)
    return found


def _fields(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields with their schemas; upstream tools may write `true` for one of anything."""
    fields = schema.get("properties", {}).items()
    return {name: field if isinstance(field, Mapping) else {} for name, field in fields}


def _type_name(field: Any) -> str:
    if not isinstance(field, Mapping):
        return "any"
    if "anyOf" in field:
        return " | ".join(_type_name(choice) for choice in field["anyOf"])
    if "enum" in field:
        return " | ".join(str(choice) for choice in field["enum"])
    if "$ref" in field:
        return str(field["$ref"].rsplit("/", 1)[-1])
    if field.get("type") == "array" and field.get("items"):
        return f"list of {_type_name(field['items'])}"
    return str(field.get("type", "any"))


def example(handler: Documented) -> dict[str, Any]:
    """A smallest request that has the right shape."""
    schema = handler.input_schema
    fields = _fields(schema)
    return {name: _example_of(fields.get(name, {})) for name in schema.get("required", ())}


def _example_of(field: Any) -> Any:
    if not isinstance(field, Mapping):
        return "text"
    if field.get("enum"):
        return field["enum"][0]
    if "anyOf" in field:
        return _example_of(field["anyOf"][0])
    return _EXAMPLES.get(str(field.get("type")), "text")


def one_line(handler: Documented) -> str:
    """`event(required, optional?) - summary`; an event that is pushed has an arrow before it."""
    names = [p["name"] + ("" if p["required"] else "?") for p in parameters(handler)]
    mark = "<- " if handler.spec.pushed else ""
    return f"{mark}{handler.spec.name}({', '.join(names)}) - {handler.spec.summary}"


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


def search_answer(tools: Iterable[Tool], ids: Iterable[str], form: SearchFormat) -> dict[str, Any]:
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


class ToolServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The command by which a host starts our MCP server; nothing in it may be a secret."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = {}


def claude_arguments(universe: Universe, grant: Grant, server: ToolServer) -> list[str]:
    """Arguments for the Claude command line: exactly its tools that are held, and ours.

    `--allowedTools` alone only adds to what the host allows anyway. `--tools` is all that the model
    gets of the host's own, and `--strict-mcp-config` leaves out every other server.
    """
    shown = grant.exposed - held_back(universe, grant.exposed)
    names = names_for(universe, shown)
    tools = [names[event] for event in sorted(names)]
    served = [f"mcp__{SERVER_NAME}__{name}" for name in (*tools, *_meta_tools(grant))]
    config = msgspec.json.encode({"mcpServers": {SERVER_NAME: server}}).decode()
    held = sorted(grant.claude_tools)
    own = dict.fromkeys(_bare(tool) for tool in held if not tool.startswith("mcp__"))
    arguments = ["--allowedTools", ",".join([*held, *served]), "--tools", ",".join(own)]
    if grant.denied_tools:
        arguments += ["--disallowedTools", ",".join(sorted(grant.denied_tools))]
    return [*arguments, "--mcp-config", config, "--strict-mcp-config"]


def _bare(tool: str) -> str:
    """The name of a tool without the rule behind it: `Bash(git:*)` is a part of `Bash`."""
    return tool.partition("(")[0]


def _meta_tools(grant: Grant) -> list[str]:
    """The tools that are no events; each call through them is decided like any other."""
    if SEARCH not in grant.events:
        return []
    return [META_TOOL] if grant.exposure == "all" else [META_TOOL, CALL_TOOL]


def stdio_config(host: Host, server: ToolServer) -> dict[str, Any]:
    """The file of a host that starts a process for our tools."""
    entry = msgspec.to_builtins(server)
    if host in ("vscode", "cursor"):
        entry = {"type": "stdio", **entry}
    return {servers_key(host): {SERVER_NAME: entry}}


def http_config(host: Host, url: str) -> dict[str, Any] | None:
    """The file of a host that asks a running daemon; None when the host has no way to do so.

    Claude Desktop skips an entry with an address, and starts a process with a few variables only,
    so a token for it would have to stand in the file.
    """
    make = _OVER_HTTP.get(host)
    return None if make is None else make(url)


def servers_key(host: Host) -> str:
    """Under which key of its file a host lists servers."""
    return "servers" if host == "vscode" else "mcpServers"


def _claude_code(url: str) -> dict[str, Any]:
    return {"mcpServers": {SERVER_NAME: {"type": "http", **_asking(url, f"${{{TOKEN_VARIABLE}}}")}}}


def _cursor(url: str) -> dict[str, Any]:
    return {"mcpServers": {SERVER_NAME: _asking(url, f"${{env:{TOKEN_VARIABLE}}}")}}


def _vscode(url: str) -> dict[str, Any]:
    question = {
        "type": "promptString",
        "id": _TOKEN_INPUT,
        "description": "Bearer token for remit (remit key token NAME)",
        "password": True,
    }
    entry = {"type": "http", **_asking(url, f"${{input:{_TOKEN_INPUT}}}")}
    return {"inputs": [question], "servers": {SERVER_NAME: entry}}


def _asking(url: str, token: str) -> dict[str, Any]:
    return {"url": url, "headers": {"Authorization": f"Bearer {token}"}}


_OVER_HTTP: dict[Host, Callable[[str], dict[str, Any]]] = {
    "claude-code": _claude_code,
    "cursor": _cursor,
    "vscode": _vscode,
}
