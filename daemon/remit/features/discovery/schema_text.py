"""A JSON Schema as lines that a model reads faster than JSON: one parameter a line."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from remit.text.unicode import one_line

_DEPTH = 3
_MOST = 400
"""Lines of one schema; more would be cut from every budget anyway."""
_CHOICES = 24
_VALUE = 80
"""Characters of one default or choice."""

Schema = Mapping[str, Any]


def schema_lines(schema: Schema) -> list[str]:
    """The parameters of a schema, those that are required first."""
    lines: list[str] = []
    for line in _fields(schema, _definitions(schema), 0):
        lines.append(line)
        if len(lines) == _MOST:
            break
    return lines


def _fields(schema: Schema, known: Schema, depth: int) -> Iterator[str]:
    fields = schema.get("properties")
    if not isinstance(fields, Mapping):
        return
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set()
    # What is cut off at the end of a budget had better be optional.
    for name in sorted(fields, key=lambda name: name not in needed):
        field = _followed(fields[name], known)
        yield "  " * (depth + 1) + _field(str(name), field, known, needed=name in needed)
        if depth + 1 < _DEPTH:
            yield from _fields(_inner(field, known), known, depth + 1)


def _field(name: str, field: Schema, known: Schema, *, needed: bool) -> str:
    kind = ", ".join(part for part in (_type(field, known), "required" if needed else "") if part)
    text = one_line(name) + (f" ({kind})" if kind else "")
    about = one_line(field.get("description"))
    text += f": {about}" if about else ""
    choices = field.get("enum")
    if isinstance(choices, list) and choices:
        shown = "|".join(_value(choice) for choice in choices[:_CHOICES])
        text += f" [{shown}{'|…' if len(choices) > _CHOICES else ''}]"
    if "default" in field and field["default"] is not None:
        text += f" (default: {_value(field['default'], quoted=True)})"
    return text


def _type(field: Schema, known: Schema) -> str:
    kind = field.get("type")
    if isinstance(kind, list):
        return "|".join(one_line(part) for part in kind if part != "null")
    if kind == "array":
        items = _type(_followed(field.get("items"), known), known)
        return f"array of {items}" if items else "array"
    if isinstance(kind, str):
        return one_line(kind)
    for way in ("anyOf", "oneOf"):
        ways = field.get(way)
        if isinstance(ways, list):
            kinds = [_plain_type(_followed(one, known)) for one in ways[:_CHOICES]]
            return "|".join(dict.fromkeys(kind for kind in kinds if kind and kind != "null"))
    return ""


def _plain_type(field: Schema) -> str:
    kind = field.get("type")
    return one_line(kind) if isinstance(kind, str) else ""


def _inner(field: Schema, known: Schema) -> Schema:
    """Where the fields of a field are: in itself, or in what its list holds."""
    return _followed(field.get("items"), known) if field.get("type") == "array" else field


def _followed(field: Any, known: Schema) -> Schema:
    """A field, or what it refers to; anything that is no schema is an empty one."""
    if not isinstance(field, Mapping):
        return {}
    reference = field.get("$ref")
    if not isinstance(reference, str):
        return field
    found = known.get(reference.rpartition("/")[2])
    own = {key: value for key, value in field.items() if key != "$ref"}
    return {**found, **own} if isinstance(found, Mapping) else own


def _definitions(schema: Schema) -> Schema:
    found = schema.get("$defs") or schema.get("definitions")
    return found if isinstance(found, Mapping) else {}


def _value(value: Any, *, quoted: bool = False) -> str:
    if isinstance(value, str) and not quoted:
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    text = one_line(text)
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
