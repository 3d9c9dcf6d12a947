"""The tools that `mcp.py` serves everywhere: real ones of public servers, written as functions.

One module is written for remit and one for fastmcp, with the same functions and docstrings. What
remit then lists is what the bare server lists too, so all three speak of the same tools.
"""

import json
import keyword
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OWN = 41
"""With the nine that every agent of remit has, 50."""
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_EVENT = "@event_handler('bench:{name}', tool='{name}', effect='{effect}')"
_HEADS = {
    "remit": "from remit.kernel.dispatch.registry import event_handler\n",
    "fastmcp": (
        "TOOLS = {}\n\n\n"
        "def event_handler(event, *, tool, effect):\n"
        "    return lambda function: TOOLS.setdefault(tool, function)\n"
    ),
}
ANSWER = {"status": "done", "items": [f"entry {n} of what was asked for" for n in range(8)]}
"""What every tool answers, whatever it is asked."""

Json = dict[str, Any]


def real_tools(folder: Path, count: int) -> list[Json]:
    """Tools of many public servers, those whose arguments can be parameters of a function."""
    dumps = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    found: dict[str, Json] = {}
    for depth in range(max((len(dump["tools"]) for dump in dumps), default=0)):
        for tool in (dump["tools"][depth] for dump in dumps if len(dump["tools"]) > depth):
            if len(found) < count and _is_plain(tool):
                found.setdefault(_segment(tool["name"]), tool)
    return [{**tool, "name": name} for name, tool in found.items()]


def made_tools(count: int) -> list[Json]:
    """Tools like those, where the public ones are not at hand."""
    text = {"type": "string", "description": "What to look for, in words or as a pattern."}
    limit = {"type": "integer", "description": "How many to answer at the most.", "default": 10}
    fields = {"query": text, "limit": limit}
    schema = {"type": "object", "properties": fields, "required": ["query"]}
    told = "Look something up and answer what was found.\n\nThe newest comes first. " * 2
    return [
        {"name": f"look_up_{n}", "description": told, "inputSchema": schema} for n in range(count)
    ]


def module(tools: list[Json], kind: str) -> str:
    """The text of a module that serves them; every second one changes something."""
    head = f"from typing import Annotated, Any, Literal\n\n{_HEADS[kind]}\n\nANSWER = {ANSWER!r}\n"
    return head + "".join(_function(tool, changes=bool(at % 2)) for at, tool in enumerate(tools))


def call_of(tool: Json) -> Json:
    """Arguments that fit a listed tool: what it needs, and no more."""
    properties = tool["inputSchema"].get("properties", {})
    needed = tool["inputSchema"].get("required", ())
    return {name: _example(properties[name]) for name in needed}


def chosen(listed: list[Json], *, changes: bool) -> Json:
    """The tool that is called: one that needs something, and only text."""

    def fits(tool: Json) -> bool:
        asked = call_of(tool)
        return bool(asked) and all(isinstance(value, str) for value in asked.values())

    return next(
        tool
        for tool in listed
        if is_own(tool) and fits(tool) and tool["annotations"]["readOnlyHint"] is not changes
    )


def is_own(tool: Json) -> bool:
    """Tell whether a tool is one of ours, and not one that every agent of remit has."""
    return not tool["name"].startswith(("system_", "permission_", "event_", "discover_", "bench__"))


def _segment(name: str) -> str:
    return name.lower().replace("-", "_")


def _is_plain(tool: Json) -> bool:
    names = tool["inputSchema"].get("properties", {})
    return _segment(tool["name"]).isidentifier() and all(
        name.isidentifier() and not keyword.iskeyword(name) and name not in ("ctx", "self")
        for name in names
    )


def _function(tool: Json, *, changes: bool) -> str:
    schema = tool["inputSchema"]
    needed = set(schema.get("required", ()))
    fields = schema.get("properties", {})
    first = [f"{name}: {_type(field)}" for name, field in fields.items() if name in needed]
    optional = {name: field for name, field in fields.items() if name not in needed}
    others = [f"{name}: {_type(field)} | None = None" for name, field in optional.items()]
    lines = [_told(tool.get("description", "")), *_arguments(fields)]
    decorator = _EVENT.format(name=tool["name"], effect="write" if changes else "read")
    signature = f"{tool['name']}({', '.join([*first, *others])}) -> dict[str, Any]"
    body = f"    {chr(10).join(lines)!r}\n    return ANSWER\n"
    return f"\n\n{decorator}\nasync def {signature}:\n{body}"


def _arguments(fields: Json) -> Iterator[str]:
    if fields:
        yield "\nArgs:"
    for name, field in fields.items():
        yield f"    {name}: {' '.join(str(field.get('description', name)).split())}"


def _told(text: str) -> str:
    """A description for a docstring; no line of it may look like the head of a section."""
    lines = [line.strip().removesuffix(":") for line in text.strip().splitlines()]
    return "\n".join(lines) or "Does it."


def _type(field: Json) -> str:
    if "enum" in field and all(isinstance(one, str) for one in field["enum"]):
        return f"Literal[{', '.join(map(repr, field['enum']))}]"
    kind = field.get("type")
    if kind == "array":
        return f"list[{_type(field.get('items') or {})}]"
    if kind == "object":
        return "dict[str, Any]"
    return _TYPES.get(str(kind), "Any")


def _example(field: Json) -> Any:
    if "enum" in field:
        return field["enum"][0]
    kinds = {"string": "harbour", "integer": 1, "number": 1.0, "boolean": True, "array": []}
    return kinds.get(str(field.get("type")), {})
