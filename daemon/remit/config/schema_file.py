"""schema.json: the JSON Schema of what a capability is called with."""

import json
from typing import Any

import msgspec

from remit.config.kinds import Report
from remit.config.nodes import MAX_DEPTH, read_text
from remit.model.place import Place

SCHEMA_FILE = "schema.json"
MAX_SCHEMA = 256 * 1024


class _RefusedError(ValueError):
    """A JSON text that is well formed and still not taken."""


def read_schema_file(raw: bytes, file: str, report: Report) -> dict[str, Any] | None:
    """Read a schema; None after a problem was reported."""
    if len(raw) > MAX_SCHEMA:
        message = f"the file has more than {MAX_SCHEMA:,} bytes"
        report.add(Place(file), "too_large", message, "shorten it")
        return None
    text, problems = read_text(raw, file)
    if problems:
        report.extend(problems)
        return None
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = Place(file, error.lineno, error.colno)
        report.add(place, "json_syntax", f"this is not JSON: {error.msg}")
        return None
    except (_RefusedError, RecursionError, ValueError) as error:
        report.add(Place(file), "json_syntax", f"this JSON is not understood: {error}")
        return None
    return checked_schema(found, Place(file), report)


def checked_schema(found: object, place: Place, report: Report) -> dict[str, Any] | None:
    """Accept an object that can be sent to a client; None after a problem was reported."""
    if not isinstance(found, dict):
        report.add(place, "wrong_type", "a schema is an object", 'as in {"type": "object"}')
        return None
    if _depth(found) > MAX_DEPTH:
        report.add(place, "too_deep", f"nested deeper than {MAX_DEPTH} levels", "flatten it")
        return None
    try:
        msgspec.msgpack.encode(found)
    except (OverflowError, ValueError) as error:  # numbers over 64 bits, half characters
        report.add(place, "json_syntax", f"this JSON is not understood: {error}")
        return None
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RefusedError("a key stands twice in one object")
    return found


def _no_constant(text: str) -> object:
    raise _RefusedError(f"{text} is not a number")


def _depth(value: object) -> int:
    """How many levels a value has; counting ends one above the limit."""
    level: list[object] = [value]
    for depth in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner:
            return depth + 1
        level = inner
    return MAX_DEPTH + 1
