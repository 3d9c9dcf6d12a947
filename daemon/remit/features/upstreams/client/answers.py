"""Numbers that are none: JSON has no NaN and no infinity, but some who read it do.

Written again they become `null`, so that what was checked, pinned or shown would be something else.
"""

import math
from typing import Any

import anyio.to_thread
import msgspec
from mcp_types import CallToolResult

from remit.errors import RemitError, TooLargeError, ToolFailedError
from remit.features.upstreams.client.output import Masks
from remit.features.upstreams.client.schema import Checker
from remit.features.upstreams.client.types import CallOutcome


def has_no_number(value: Any, encoded: bytes) -> bool:
    """Tell whether a JSON value has a NaN or an infinity in it.

    Args:
        value: what may have one.
        encoded: the same as `msgspec.json` writes it, where a look is quick.
    """
    if b"null" not in encoded:
        return False
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return True
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False


# What a tool answered, brought into our shape, or the error that it amounts to.


_AT_ONCE = 16_384
"""Bytes of an answer that is checked at once; a larger one may take a while, in a thread."""


def outcome_of(result: CallToolResult, masks: Masks, *, most: int) -> CallOutcome:
    """An answer as we pass it on.

    Raises:
        TooLargeError: it is larger than is taken.
        ToolFailedError: it cannot be written down.
    """
    content = [
        block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content
    ]
    value: dict[str, Any] = {"content": content}
    if result.structured_content is not None:
        value["structured"] = result.structured_content
    try:
        encoded = msgspec.json.encode(value)
        msgspec.msgpack.encode(value)  # it has no integers beyond 64 bits
    except (UnicodeEncodeError, OverflowError) as error:
        raise _unreadable() from error
    if len(encoded) > most:
        raise too_large(len(encoded), most)
    if has_no_number(value, encoded):
        raise _unreadable()
    clean = masks.value(value, encoded)
    return CallOutcome(
        content=clean["content"],
        structured_content=clean.get("structured"),
        is_error=bool(result.is_error),
    )


def _unreadable() -> RemitError:
    message = "the tool answered text or numbers that cannot be written"
    return ToolFailedError(message, details={"reason": "unreadable"})


def too_large(size: int | None, most: int) -> RemitError:
    """The error for an answer that was not taken."""
    answered = f"{size:,} bytes" if size else "too much"
    return TooLargeError(
        f"the tool answered {answered}; {most:,} bytes are taken",
        hint="ask for less at once",
        details={"reason": "too_large", "limit": most},
    )


async def check_structure(tool: str, outcome: CallOutcome, checker: Checker) -> None:
    """Hold a tool to what it promised.

    Raises:
        ToolFailedError: the answer does not fit the tool's output schema.
    """
    value = outcome.structured_content
    if value is None:
        found = "it has no structured content"
    elif len(msgspec.json.encode(value)) <= _AT_ONCE:
        found = checker.mistake(value)
    else:
        found = await anyio.to_thread.run_sync(checker.mistake, value)
    if not found:
        return
    raise ToolFailedError(
        f"the answer of {tool} does not fit its own output schema: {found}",
        hint="the server breaks its promise: tell whoever runs it",
        details={"reason": "output_schema"},
    )
