"""A descriptor: a searchable thing, whatever it came from; and the tools that reach all others.

The two tools, one that searches and one that calls, are sent with every turn: every word costs.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from remit.errors import Place

DescriptorKind = Literal["tool", "skill", "extension", "channel"]
DESCRIPTOR_KINDS: tuple[DescriptorKind, ...] = ("tool", "skill", "extension", "channel")
SourceKind = Literal["event", "skill", "manifest", "extension", "channel", "mcp"]

NOBODY = "!nobody"
"""Stands in `Descriptor.capabilities` for a capability that nobody can hold: it is no such name."""
META_TOOL = "discover_capabilities"
CALL_TOOL = "call_capability"
_MAX_PARAMETERS = 256


class Parameter(msgspec.Struct, frozen=True):
    """One field of what a tool is called with."""

    name: str
    type: str = ""
    description: str = ""
    required: bool = False


class SourceRef(msgspec.Struct, frozen=True):
    """The source of a descriptor, so that the rest of it can be read on demand."""

    kind: SourceKind
    place: Place | None = None
    content_file: str = ""
    """A text file with the full content, from `root` on; empty: there is none."""
    root: str = ""
    """The folder that `content_file` must lie in, after links are followed."""
    module: str = ""
    """Of an extension: the Python module whose handlers can be loaded; empty: there is none."""


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a tool, skill, extension or channel without opening it."""

    id: str
    kind: DescriptorKind
    name: str
    display_name: str = ""
    description: str = ""
    category: str = ""
    server: str = ""
    """The namespace or the upstream that it belongs to."""
    tags: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    required_secrets: tuple[str, ...] = ()
    """Names only."""
    required_tools: tuple[str, ...] = ()
    """Ids, events or names of the tools that it cannot do without."""
    composed_with: tuple[str, ...] = ()
    """Ids, events or names of what it is used together with."""
    examples: tuple[str, ...] = ()
    """Requests that it answers, written by its author."""
    available: bool = True
    unavailable_because: str = ""
    has_side_effects: bool = False
    is_effect_known: bool = True
    """False: nobody said what it does, and `has_side_effects` is the careful assumption."""
    is_destructive: bool = False
    """Its author said that what it does cannot be undone."""
    event: str = ""
    """The event that is called; empty for what remit itself cannot call."""
    capabilities: tuple[str, ...] = ()
    """Only holders of one of these are shown it; empty: nobody is kept from it by this."""
    full_schema: dict[str, Any] | None = None
    source: SourceRef = SourceRef("event")

    @property
    def title(self) -> str:
        """The name for people."""
        return self.display_name or self.name


def parameters_of(schema: Mapping[str, Any] | None) -> tuple[Parameter, ...]:
    """The fields that a JSON Schema of an object names; what is not understood is left out."""
    properties = schema.get("properties") if schema else None
    if schema is None or not isinstance(properties, dict):
        return ()
    needed = schema.get("required")
    required = {one for one in needed if isinstance(one, str)} if isinstance(needed, list) else ()
    named = [(name, value) for name, value in properties.items() if isinstance(value, dict)]
    return tuple(
        Parameter(name, _text(value, "type"), _text(value, "description"), name in required)
        for name, value in named[:_MAX_PARAMETERS]
    )


def _text(schema: Mapping[str, Any], key: str) -> str:
    value = schema.get(key)
    if isinstance(value, list):  # several types
        return " | ".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def tool_id(event: str) -> str:
    """The id of an event as a descriptor."""
    return event if event.startswith("tool:") else f"tool:{event}"


def meta_tool() -> dict[str, Any]:
    """The definition of `discover_capabilities`."""
    return {
        "name": META_TOOL,
        "description": "Find tools, skills and channels by what you want to do.",
        "input_schema": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "kind": {"enum": list(DESCRIPTOR_KINDS)},
                "category": {"type": "string"},
            },
            "required": ["query"],
        },
    }


def call_tool() -> dict[str, Any]:
    """The definition of `call_capability`, for hosts that list only a few tools."""
    return {
        "name": CALL_TOOL,
        "description": f"Call a tool that {META_TOOL} found.",
        "input_schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name"],
        },
    }
