"""Where each part of a free JSON value stands in its file, and schemas that are checked there."""

import math
import re
from collections.abc import Mapping as MappingType
from typing import Any

from remit.config.strict.kinds import BAD, JsonKind, Report
from remit.config.strict.yaml import JsonScalar, Mapping, Node, Scalar, Sequence
from remit.model.place import Place
from remit.model.schema import Path, schema_mistakes, shown


def places_of(node: Node) -> dict[Path, Place]:
    """The place of every part of a value; of an entry of a mapping that of its key."""
    found: dict[Path, Place] = {(): node.place}
    waiting: list[tuple[Path, Node]] = [((), node)]
    while waiting:
        path, present = waiting.pop()
        if isinstance(present, Mapping):
            for key, value in present.pairs:
                found[*path, key.text] = key.place
                waiting.append(((*path, key.text), value))
        elif isinstance(present, Sequence):
            for at, value in enumerate(present.items):
                found[*path, at] = value.place
                waiting.append(((*path, at), value))
    return found


class SchemaKind(JsonKind, frozen=True):
    """A JSON Schema, checked where it stands."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a mapping that is a JSON Schema."""
        schema = super().read(node, report)
        if schema is BAD:
            return BAD
        mistakes = schema_mistakes(schema)
        places: MappingType[Path, Place] = places_of(node) if mistakes else {}
        for mistake in mistakes:
            place = nearest_place(places, mistake.path)
            message = f"this is no JSON Schema: {mistake.message} ({shown(mistake.path)})"
            report.add(
                place, "invalid_schema", message, "see https://json-schema.org/draft/2020-12"
            )
        return BAD if mistakes else schema


def nearest_place(places: MappingType[Path, Place], path: Path) -> Place:
    """The place of a part, or of the innermost part around it that has one."""
    while path not in places:
        path = path[:-1]
    return places[path]


# What YAML 1.2 takes a value for, by its core schema.
#
# Our own files are read more strictly. The frontmatter of a skill is not ours: hosts read it with
# libraries of their own and refuse a skill about which they are told something else.


_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST = 400
"""Digits of a number; longer ones are no JSON that anybody reads alike."""
_EXACT = 2**53


def core_json(node: Node) -> object:
    """The plain value of a node. Depth is capped already."""
    if isinstance(node, Scalar):
        return _meaning(node.text) if node.plain else node.text
    if isinstance(node, Sequence):
        return [core_json(item) for item in node.items]
    return {key.text: core_json(value) for key, value in node.pairs}


def _meaning(text: str) -> JsonScalar:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST:
        return text
    if _WHOLE.fullmatch(text):
        return _exact(int(text))
    if _BASED.fullmatch(text):
        return _exact(int(text[2:], 8 if text[1] == "o" else 16))
    if _NUMBER.fullmatch(text):
        return _finite(float(text), text)
    return text


def _exact(number: int) -> int | float | str:
    """The number as JSON's readers have it: beyond 53 bits they all keep the nearest float."""
    return number if abs(number) < _EXACT else _finite_float(number)


def _finite_float(number: int) -> float | str:
    try:
        return float(number)
    except OverflowError:
        return str(number)


def _finite(number: float, text: str) -> float | str:
    return number if math.isfinite(number) else text
