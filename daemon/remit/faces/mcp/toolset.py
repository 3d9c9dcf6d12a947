"""The tools of one caller as a host lists them.

What is listed is what the daemon answers about this caller now, from its live grant and whatever it
may ask for itself, so the list never shows more than may be used. `exposure` says how much of it
stands in the list; the rest is found by asking.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from remit.faces.mcp.caller import Caller
from remit.kernel.dispatch.own_requests import TOOL, TOOLS
from remit.kernel.dispatch.tool_list import host_tools
from remit.model.descriptor import CALL_TOOL, DESCRIPTOR_KINDS, META_TOOL, tool_id
from remit_client.wire import Answer, Failure

Wire = dict[str, Any]
"""A tool as it stands in `tools/list`."""
_EMPTY = MappingProxyType({"tools": (), "exposure": "all", "searchable": False})


class Tool(msgspec.Struct, frozen=True, eq=False):
    """One tool and the event behind it."""

    event: str
    wire: Wire
    content: bool = False
    """Whether its answers are content blocks already."""
    warnings: Sequence[dict[str, str]] = ()
    """What is said with each answer: that it was named by an old name."""


class Toolset(msgspec.Struct, frozen=True, eq=False):
    """Every tool that one caller may be shown, by name."""

    tools: Mapping[str, Tool] = {}
    told: Mapping[str, Any] = _EMPTY
    """What the daemon answered."""
    problem: Failure | None = None
    """Why the list is not known just now."""
    revision: int = 0

    @property
    def exposure(self) -> str:
        """How much of it stands in the list."""
        return str(self.told["exposure"])

    @property
    def searchable(self) -> bool:
        """Tell whether the caller may search."""
        return bool(self.told["searchable"])

    def find(self, name: str) -> Tool | None:
        """The tool of that name, of that event, or of the id that discovery prints."""
        found = self.tools.get(name)
        if found is None and ":" in name:
            meant = (name, name.removeprefix(tool_id("")))
            found = next((tool for tool in self.tools.values() if tool.event in meant), None)
        return found

    def has(self, name: str) -> bool:
        """Tell whether a call of that name means something."""
        return (self.searchable and name in (META_TOOL, CALL_TOOL)) or self.find(name) is not None

    def listed(self, found: Iterable[str] = ()) -> list[Wire]:
        """What a host lists; `found` are the events of the last search, for the mode `turn`."""
        return [_wire(one) for one in host_tools(self.told, found)]


async def fetch_toolset(caller: Caller, listed: Iterable[str] | None = None) -> Toolset:
    """Ask for the tools of a caller.

    Args:
        caller: whose tools.
        listed: when its host puts them before a model, the events of its last search.
    """
    answer = await caller.ask(
        TOOLS, None if listed is None else {"listed": True, "found": list(listed)}
    )
    if answer.error is not None:
        return Toolset(problem=answer.error)
    data = answer.data
    tools = {one["name"]: _tool(one) for one in data["tools"]}
    return Toolset(tools, data, revision=data["revision"])


async def fetch_tool(caller: Caller, name: str) -> Tool | Answer:
    """The tool that a caller means by a name; else a refusal, which was written down."""
    answer = await caller.ask(TOOL, {"name": name})
    if answer.error is not None:
        return answer
    return msgspec.structs.replace(_tool(answer.data["tool"]), warnings=answer.warnings)


def id_in(text: Any) -> str | None:
    """The id of something that discovery finds, if a text is one; it may be of nothing."""
    if not isinstance(text, str) or any(char.isspace() for char in text.strip()):
        return None
    kind, colon, rest = text.strip().partition(":")
    return text.strip() if colon and rest and kind in DESCRIPTOR_KINDS else None


def unwrapped(arguments: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The call inside of a `call_capability`; None when there is none."""
    name, inner = arguments.get("name"), arguments.get("arguments")
    inner = {} if inner is None else inner  # models like to say null
    return (name, inner) if isinstance(name, str) and isinstance(inner, dict) else None


def _tool(one: Mapping[str, Any]) -> Tool:
    return Tool(one["event"], _wire(one), one["content"])


def _wire(one: Mapping[str, Any]) -> Wire:
    wire: Wire = {"name": one["name"]}
    if one.get("title"):
        wire["title"] = one["title"]
    wire |= {"description": one["description"], "inputSchema": _schema(one["input_schema"])}
    if one.get("output_schema"):
        wire["outputSchema"] = one["output_schema"]
    wire["annotations"] = one["annotations"]
    return wire


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Hosts want the schema of an object, even of one without fields."""
    return schema if schema.get("type") == "object" else {"type": "object", **schema}
