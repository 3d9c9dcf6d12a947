"""The two tools that reach all others: one finds them, one calls them.

They are sent with every turn, so every word costs.
"""

from typing import Any

from remit.model.descriptor import DESCRIPTOR_KINDS

META_TOOL = "discover_capabilities"
CALL_TOOL = "call_capability"


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
