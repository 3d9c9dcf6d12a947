"""Stored JSON as it can be shown: whatever stands in the file, no reader breaks on it.

What a caller sends is checked at the edge. A row may still hold something else: it was written by
an earlier version, by another program, or it is damaged. Then what can be shown is shown, and a
text stands in the place of the rest.
"""

from typing import Any

import msgspec

from remit_client.values import DEEPEST, HIGHEST, LOWEST

_BEGINNING = 80
_DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)


def shown_value(data: bytes, *, most: int | None = None) -> Any:
    """The value of stored JSON; of what is damaged, or has over `most` bytes, its beginning."""
    if most is not None and len(data) > most:
        return _unreadable(data, f"more than {most:,} bytes are not shown here")
    try:
        found = msgspec.json.decode(data)
    except _DAMAGED as error:
        return _unreadable(data, f"it is not JSON: {error}")
    return found if _nests_little(data) and _is_small(found) else _plain(found, 0)


def shown_object(data: bytes) -> dict[str, Any]:
    """The same where an object is expected."""
    found = shown_value(data)
    return found if isinstance(found, dict) else _unreadable(data, "it is not a JSON object")


def shown_text(data: bytes) -> str:
    """Text of a column; a byte that is no UTF-8 is escaped."""
    return data.decode(errors="backslashreplace")


def _unreadable(data: bytes, why: str) -> dict[str, Any]:
    begins = ascii(shown_text(data[:_BEGINNING]))[1:-1]
    return {"unreadable": why, "bytes": len(data), "begins": begins}


def _nests_little(data: bytes) -> bool:
    return data.count(b"[") + data.count(b"{") <= DEEPEST


def _is_small(value: Any) -> bool:
    """Tell whether all numbers have 64 bits."""
    try:
        msgspec.msgpack.encode(value)
    except (OverflowError, RecursionError):
        return False
    return True


def _plain(value: Any, depth: int) -> Any:
    """The same with texts for what some format cannot carry."""
    if isinstance(value, int) and not LOWEST <= value <= HIGHEST:
        return str(value)
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return f"… ({len(value)} inside)"
    if isinstance(value, dict):
        return {key: _plain(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, depth + 1) for part in value]
    return value
