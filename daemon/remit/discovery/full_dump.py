"""What a list of all tools would have cost."""

from collections.abc import Callable
from typing import Any

import msgspec

from remit.discovery.counting import TokenCounter, text_hash
from remit.discovery.index import MAX_DESCRIPTORS
from remit.discovery.texts import has_content
from remit.model.descriptor import Descriptor
from remit.model.place import DefinitionError

_REMEMBERED = 2 * MAX_DESCRIPTORS
"""Costs that are kept: those of an index and of the one before it."""
_COSTS: dict[tuple[str, bytes], int] = {}


def full_dump_tokens(
    descriptor: Descriptor, counter: TokenCounter, content: Callable[[Descriptor], str]
) -> int:
    """What a descriptor would cost in a list of everything: its definition, or all of its text."""
    text = dumped(descriptor, content)
    key = (counter.name, text_hash(text))
    known = _COSTS.get(key)
    if known is None:
        known = counter.count(text)
        if len(_COSTS) >= _REMEMBERED:
            _COSTS.clear()
        _COSTS[key] = known
    return known


def dumped(descriptor: Descriptor, content: Callable[[Descriptor], str]) -> str:
    """A descriptor as it would stand in a list of everything."""
    if descriptor.kind == "skill" and has_content(descriptor):
        try:
            text = content(descriptor)
        except (OSError, UnicodeError, DefinitionError):
            text = ""  # it would be listed, without what cannot be read
        if text:
            return text
    listed: dict[str, Any] = {"name": descriptor.name, "description": descriptor.description}
    if descriptor.kind == "tool":
        listed["input_schema"] = _schema(descriptor)
    try:
        return msgspec.json.encode(listed).decode()
    except (TypeError, ValueError):  # half a pair, or what JSON has not: it costs about the same
        return repr(listed)


def _schema(descriptor: Descriptor) -> dict[str, Any]:
    if descriptor.full_schema is not None:
        return descriptor.full_schema
    return {
        "type": "object",
        "properties": {
            one.name: {"type": one.type, "description": one.description}
            for one in descriptor.parameters
        },
        "required": [one.name for one in descriptor.parameters if one.required],
    }
