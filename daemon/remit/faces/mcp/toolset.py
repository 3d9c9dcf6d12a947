"""The tools of one caller as a host lists them.

What is listed is what `system:discover` answers to this caller now, so the list never shows more
than may be used. `exposure` says how much of it stands in the list; the rest is found by asking.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from remit.faces.mcp.caller import Caller
from remit.model.meta_tool import CALL_TOOL, META_TOOL, call_tool, meta_tool
from remit_client.wire import Failure

LIST_EVENT = "system:discover"
_ASKED = {"level": "full", "format": "mcp"}

Wire = dict[str, Any]
"""A tool as it stands in `tools/list`."""


class Tool(msgspec.Struct, frozen=True, eq=False):
    """One tool and the event behind it."""

    event: str
    wire: Wire
    content: bool = False
    """Whether its answers are content blocks already."""
    pinned: bool = False


class Toolset(msgspec.Struct, frozen=True, eq=False):
    """Every tool that one caller may be shown, by name."""

    tools: Mapping[str, Tool] = {}
    exposure: str = "all"
    searchable: bool = False
    """Whether the caller may search."""
    problem: Failure | None = None
    """Why the list is not known just now."""

    @property
    def is_whole(self) -> bool:
        """Tell whether everything is listed; also where nothing could be found by searching."""
        return self.exposure == "all" or not self.searchable

    def find(self, name: str) -> Tool | None:
        """The tool of that name, or of that event."""
        found = self.tools.get(name)
        if found is None and ":" in name:
            found = next((tool for tool in self.tools.values() if tool.event == name), None)
        return found

    def has(self, name: str) -> bool:
        """Tell whether a call of that name means something."""
        return (self.searchable and name in (META_TOOL, CALL_TOOL)) or self.find(name) is not None

    def listed(self, found: Iterable[str] = ()) -> list[Wire]:
        """What a host lists; `found` are the events of the last search, for the mode `turn`."""
        meta = [_META] if self.searchable else []
        if self.is_whole:
            return [tool.wire for tool in self.tools.values()] + meta
        shown = [tool for tool in self.tools.values() if tool.pinned]
        if self.exposure == "turn":
            others = [one for one in self.tools.values() if not one.pinned]
            by_event = {tool.event: tool for tool in others}
            shown += [by_event[event] for event in found if event in by_event]
            return [tool.wire for tool in shown] + meta
        return [tool.wire for tool in shown] + [*meta, _CALL]


async def fetch_toolset(caller: Caller) -> Toolset:
    """Ask for the tools of a caller; without that right there are none."""
    answer = await caller.ask(LIST_EVENT, _ASKED)
    if answer.error is not None:
        is_refused = answer.error.code in ("denied", "unknown_event")
        return Toolset(problem=None if is_refused else answer.error)
    data = answer.data
    tools = {one["name"]: _tool(one) for one in data["tools"]}
    return Toolset(tools, data["exposure"], data["searchable"])


def unwrapped(arguments: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The call inside of a `call_capability`; None when there is none."""
    name, inner = arguments.get("name"), arguments.get("arguments")
    inner = {} if inner is None else inner  # models like to say null
    return (name, inner) if isinstance(name, str) and isinstance(inner, dict) else None


def _tool(one: Mapping[str, Any]) -> Tool:
    wire: Wire = {"name": one["name"]}
    if one.get("title"):
        wire["title"] = one["title"]
    wire |= {"description": one["description"], "inputSchema": _schema(one["input_schema"])}
    if one.get("output_schema"):
        wire["outputSchema"] = one["output_schema"]
    wire["annotations"] = one["annotations"]
    return Tool(one["event"], wire, one["content"], one["pinned"])


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Hosts want the schema of an object, even of one without fields."""
    return schema if schema.get("type") == "object" else {"type": "object", **schema}


def _wire(definition: Mapping[str, Any], **hints: bool) -> Wire:
    return {
        "name": definition["name"],
        "description": definition["description"],
        "inputSchema": definition["input_schema"],
        "annotations": hints,
    }


_META = _wire(meta_tool(), readOnlyHint=True, openWorldHint=False)
_CALL = _wire(call_tool(), readOnlyHint=False, openWorldHint=True)
