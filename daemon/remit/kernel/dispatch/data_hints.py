"""What may stand at a place in the data of a request: fields of that level, values of a choice.

Read from the JSON Schema of the request's type, and only once something did not fit.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from remit.model.names import nearest

_STEP = re.compile(r"\.([^.\[\]]+)|(\[[^\]]*\])")
_MOST = 40
"""Fields or values that a hint lists."""

Schema = dict[str, Any]


def fields_hint(kind: type[msgspec.Struct], path: str, word: str) -> str:
    """What `word` may have been meant to be, and all fields of the level where it stands."""
    fields = {name for level in _levels(kind, path) for name in level.get("properties", ())}
    if not fields:
        return "this event takes no data" if path == "$" else "this takes no fields"
    return _listed(word, sorted(fields), "the fields here")


def values_hint(kind: type[msgspec.Struct], path: str, word: str = "") -> str:
    """The values that may stand at a place, and the one that was probably meant; empty: any."""
    values = [value for level in _levels(kind, path) for value in level.get("enum", ())]
    return _listed(word, [str(value) for value in values], "it is one of") if values else ""


def _listed(word: str, known: list[str], what: str) -> str:
    near = nearest(word, known)
    meant = f"did you mean {near[0]!r}? " if near else ""
    more = f" and {len(known) - _MOST} more" if len(known) > _MOST else ""
    return f"{meant}{what}: {', '.join(known[:_MOST])}{more}"


def _levels(kind: type[msgspec.Struct], path: str) -> list[Schema]:
    """The schemas that may hold at a path as msgspec writes it, as in `$.many[0].one`."""
    schema = msgspec.json.schema(kind)
    definitions = schema.get("$defs", {})
    levels = list(_alternatives(schema, definitions))
    for step in _STEP.finditer(path.removeprefix("$")):
        inner = [found for level in levels for found in _below(level, step[1])]
        levels = [one for found in inner for one in _alternatives(found, definitions)]
    return levels


def _alternatives(schema: Schema, definitions: dict[str, Schema]) -> Iterator[Schema]:
    """A schema without references; of several, each."""
    if "$ref" in schema:
        yield from _alternatives(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _alternatives(one, definitions)
    else:
        yield schema


def _below(schema: Schema, name: str | None) -> Iterator[Schema]:
    """What is one step further: a field of that name, else any item or value."""
    if name is not None:
        found = schema.get("properties", {}).get(name)
        yield from (found,) if isinstance(found, dict) else ()
        return
    inner = [
        schema.get("items"),
        schema.get("additionalProperties"),
        *schema.get("prefixItems", ()),
    ]
    yield from (one for one in inner if isinstance(one, dict))
