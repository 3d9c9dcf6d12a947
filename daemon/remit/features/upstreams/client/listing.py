"""The tools that a server lists, page by page, in our form; what of them is left out, and why.

JSON has no NaN and no infinity, but some who read it do. Written again they become `null`, so that
what was checked, pinned or shown would be something else: neither a tool nor an answer has them.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio.lowlevel
import msgspec
from mcp.shared.inbound import find_invalid_x_mcp_header

from remit.features.upstreams.client.schema import unusable
from remit.features.upstreams.client.state import (
    ClientLimits,
    OmittedTool,
    SecretMasks,
    has_no_number,
)
from remit.model.upstream import UpstreamTool

Page = tuple[list[Any], str | None]
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_CARRIED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_LONGEST_NAME = 128
_LARGEST = 262_144
"""Bytes of one tool: a look at a larger schema would hold everybody up."""
_LONGEST_TEXT = 32_768
_LONGEST_REASON = 300
_REASONS = 50
_SHOWN_NAME = 80


class ToolList(msgspec.Struct, frozen=True):
    """The tools of a list, and those that were left out."""

    taken: tuple[UpstreamTool, ...]
    left_out: int
    reasons: tuple[OmittedTool, ...]


async def all_tools(
    page: Callable[[str | None], Awaitable[Page]], limits: ClientLimits, masks: SecretMasks
) -> ToolList:
    """Read every page, as long as there are not too many and not too much in them."""
    collector = _ToolCollector(limits, masks)
    cursor, endless = None, ""
    seen: set[str] = set()
    for _ in range(limits.pages):
        some, cursor = await page(cursor)
        await collector.add(some)
        if collector.size > limits.list_bytes:
            endless = f"its list has more than {limits.list_bytes:,} bytes"
            break
        if cursor is None:
            break
        if cursor in seen:
            endless = "its list goes round in a circle"
            break
        seen.add(cursor)
    else:
        endless = f"its list has more than {limits.pages} pages"
    return collector.sorted_out(endless)


class _ToolCollector:
    """Tools as they come, page by page; of what is not taken only the name is kept."""

    def __init__(self, limits: ClientLimits, masks: SecretMasks) -> None:
        self._limits = limits
        self._masks = masks
        self._names: Counter[str] = Counter()
        self._found: list[UpstreamTool | OmittedTool] = []
        self._beyond = 0
        self.size = 0

    async def add(self, page: list[Any]) -> None:
        room = self._limits.tools - len(self._found)
        self._beyond += len(page[room:])
        for raw in page[:room]:
            await anyio.lowlevel.checkpoint()  # a look at a schema takes up to a millisecond
            self._names[_name_of(raw)] += 1
            self._found.append(self._looked_at(raw))

    def _looked_at(self, raw: Any) -> UpstreamTool | OmittedTool:
        size = _size(raw)
        self.size += _LARGEST if size is None else size
        reason = _mistake(raw, size)
        if not reason and self.size > self._limits.list_bytes:
            reason = "what was listed before it is as much as is taken"
        name = _name_of(raw)
        if not reason and self._masks.text(name) != name:
            reason = "its name has a secret of this server in it"
        return self._left(name, reason) if reason else _tool(raw, self._masks)

    def _left(self, name: str, reason: str) -> OmittedTool:
        return OmittedTool(self._masks.text(name)[:_SHOWN_NAME], self._masks.text(reason))

    def sorted_out(self, endless: str) -> ToolList:
        left = [OmittedTool("", endless)] if endless else []
        if self._beyond:
            told = f"{self._beyond} tools are more than the {self._limits.tools} that are taken"
            left.append(OmittedTool("", told))
        alone = [
            self._left(one.name, "two tools have this name")
            if isinstance(one, UpstreamTool) and self._names[one.name] > 1
            else one
            for one in self._found
        ]
        taken = tuple(one for one in alone if isinstance(one, UpstreamTool))
        left += [one for one in alone if isinstance(one, OmittedTool)]
        beyond = self._beyond + len(alone) - len(taken)
        return ToolList(taken, beyond, tuple(left[:_REASONS]))


def _size(tool: Any) -> int | None:
    """Bytes of what is carried of a tool; None when it cannot be written."""
    if not isinstance(tool, dict):
        return 0
    carried = _carried(tool)
    try:
        msgspec.msgpack.encode(carried)  # it has no integers beyond 64 bits
        encoded = msgspec.json.encode(carried)
    except (UnicodeEncodeError, OverflowError):
        return None
    if len(encoded) <= _LARGEST and has_no_number(carried, encoded):
        return None
    return len(encoded)


def _carried(tool: dict[str, Any]) -> dict[str, Any]:
    return {key: tool[key] for key in _CARRIED if tool.get(key) is not None}


def _name_of(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def _mistake(tool: Any, size: int | None) -> str:
    """Why a tool cannot be taken over; empty when it can."""
    if not isinstance(tool, dict):
        return "it is no object"
    name = _name_of(tool)
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        return f"its name is not 1 to {_LONGEST_NAME} printable characters"
    if size is None:
        return "it has text or numbers that cannot be written"
    if size > _LARGEST:
        return f"its definition has {size:,} bytes, {_LARGEST:,} are taken"
    return _wrong_texts(tool) or _wrong_schemas(tool) or _wrong_headers(tool)


def _wrong_texts(tool: dict[str, Any]) -> str:
    for key in ("title", "description"):
        text = tool.get(key)
        if text is not None and not isinstance(text, str):
            return f"its {key} is no text"
        if text and len(text) > _LONGEST_TEXT:
            return f"its {key} has more than {_LONGEST_TEXT:,} characters"
    return ""


def _wrong_schemas(tool: dict[str, Any]) -> str:
    for key, called in (("inputSchema", "input schema"), ("outputSchema", "output schema")):
        schema = tool.get(key)
        if schema is None and key == "outputSchema":
            continue
        if schema is None:
            return f"it has no {called}"
        if not isinstance(schema, dict):
            return f"its {called} is no schema"
        if key == "inputSchema" and schema.get("type") != "object":
            return f"its {called} is not one of an object"
        if reason := unusable(schema):
            return f"its {called} cannot be used: {reason}"
    return ""


def _wrong_headers(tool: dict[str, Any]) -> str:
    """From 2026-07-28 on, a tool that asks for impossible HTTP headers must not be used."""
    reason = find_invalid_x_mcp_header(tool["inputSchema"])
    return f"its input schema cannot be used: {reason}"[:_LONGEST_REASON] if reason else ""


def _tool(raw: dict[str, Any], masks: SecretMasks) -> UpstreamTool:
    carried = _carried(raw)
    clean = masks.value(carried, msgspec.json.encode(carried))
    notes = clean.get("annotations")
    notes = notes if isinstance(notes, dict) else {}
    title = clean.get("title") or notes.get("title")
    return UpstreamTool(
        name=raw["name"],
        title=title if isinstance(title, str) else "",
        description=clean.get("description") or "",
        input_schema=clean["inputSchema"],
        output_schema=clean.get("outputSchema"),
        annotations=dict(_hints(notes)),
    )


def _hints(notes: dict[str, Any]) -> Iterable[tuple[str, bool]]:
    """Only what is plainly yes or no: `readOnlyHint: "maybe"` must not count as yes."""
    return ((name, notes[name]) for name in _HINTS if isinstance(notes.get(name), bool))
