"""Kinds of YAML values: each reads a node, reports what is wrong, and knows its JSON Schema.

One description of a key therefore serves the loader, the editor's schema and the reference page.
`read` answers the value, or BAD after it reported at least one problem. Collections leave bad parts
out and go on, so that every mistake of a file is found in one reading and names still resolve.
"""

import re
from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingType
from typing import Any, Final, Protocol

import msgspec

from remit.config.strict.yaml import Mapping, Node, Scalar, to_json
from remit.config.strict.yaml import Sequence as ListNode
from remit.errors import Place, Problem
from remit.model.names import did_you_mean
from remit.model.schema import Path, schema_mistakes, shown

MAX_PROBLEMS = 200
_SCHEMAS = "see https://json-schema.org/draft/2020-12"
_MAX_ENTRIES = 32
"""Entries of a list that says nothing twice, unless it says otherwise."""


class _Bad:
    def __repr__(self) -> str:
        return "BAD"


BAD: Final = _Bad()


class Report:
    """Collects problems, up to a bound: a page of errors teaches, ten thousand do not."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.count = 0
        self._first_unshown: Place | None = None

    def add(self, place: Place, code: str, message: str, hint: str = "") -> None:
        """Note an error."""
        self.extend([Problem(place, code, message, hint)])

    def extend(self, problems: Iterable[Problem]) -> None:
        """Note several problems; past the bound they are only counted."""
        for problem in problems:
            self.count += 1
            if self.count <= MAX_PROBLEMS:
                self.problems.append(problem)
            elif self.count == MAX_PROBLEMS + 1:
                self._first_unshown = problem.place

    def shown(self) -> tuple[Problem, ...]:
        """What was noted, and how many more there were."""
        if self._first_unshown is None:
            return tuple(self.problems)
        message = f"{self.count - MAX_PROBLEMS:,} more mistakes are not shown"
        hint = "repair the others first, then check again"
        return (*self.problems, Problem(self._first_unshown, "more_problems", message, hint))


class Kind(Protocol):
    """How one value is read and described."""

    def read(self, node: Node, report: Report) -> Any:
        """The value, or BAD when a problem was reported."""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema for editors."""


def _wrong(node: Node, report: Report, expected: str, hint: str = "") -> Any:
    report.add(node.place, "wrong_type", f"expected {expected}, found {_found(node)}", hint)
    return BAD


def _found(node: Node) -> str:
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if node.value is None:
        return "nothing"
    return {bool: "true/false", int: "a number", float: "a number"}.get(type(node.value), "text")


class TextKind(msgspec.Struct, frozen=True):
    """Text; with `placed`, wrapped together with its place by that constructor."""

    wrap: Callable[[str, Place], Any] | None = None
    limit: int = 65_536
    pattern: str = ""
    what: str = "text"

    def read(self, node: Node, report: Report) -> Any:
        """Read text; a bare number or true/false is text only when quoted."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            quoted = isinstance(node, Scalar) and node.value is not None
            return _wrong(node, report, self.what, f'write "{node.text}"' if quoted else "")  # type: ignore[union-attr]
        if len(node.value.encode()) > self.limit:
            report.add(node.place, "too_large", f"longer than {self.limit:,} bytes", "shorten it")
            return BAD
        if self.pattern and not re.fullmatch(self.pattern, node.value):
            message = f"{node.value!r} is not {self.what}"
            report.add(node.place, "invalid_name", message, f"it must match {self.pattern}")
            return BAD
        return self.wrap(node.value, node.place) if self.wrap else node.value

    def schema(self) -> dict[str, Any]:
        """A string."""
        return {"type": "string"} | ({"pattern": f"^{self.pattern}$"} if self.pattern else {})


class FlagKind(msgspec.Struct, frozen=True):
    """True or false, and no other spelling."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a boolean."""
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        return _wrong(node, report, "true or false", "only true and false are booleans here")

    def schema(self) -> dict[str, Any]:
        """A boolean."""
        return {"type": "boolean"}


class WholeKind(msgspec.Struct, frozen=True):
    """A whole number inside bounds."""

    low: int = 0
    high: int = 1_000_000_000

    def read(self, node: Node, report: Report) -> Any:
        """Read a whole number."""
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool):
            return _wrong(node, report, "a whole number")
        if not self.low <= value <= self.high:
            message = f"{value} is outside {self.low}..{self.high}"
            report.add(node.place, "out_of_range", message)
            return BAD
        return value

    def schema(self) -> dict[str, Any]:
        """A bounded integer."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


class ChoiceKind(msgspec.Struct, frozen=True):
    """One of a few words; with `wrap`, together with its place."""

    choices: tuple[str, ...]
    wrap: Callable[[Any, Place], Any] | None = None

    def read(self, node: Node, report: Report) -> Any:
        """Read one of the words."""
        if not isinstance(node, Scalar):
            return _wrong(node, report, f"one of {', '.join(self.choices)}")
        if node.text not in self.choices:
            message = f"{node.text!r} is not one of {', '.join(self.choices)}"
            report.add(node.place, "unknown_value", message, did_you_mean(node.text, self.choices))
            return BAD
        return self.wrap(node.text, node.place) if self.wrap else node.text

    def schema(self) -> dict[str, Any]:
        """An enumeration."""
        return {"enum": list(self.choices)}


class ScalarKind(msgspec.Struct, frozen=True):
    """Any single value."""

    def read(self, node: Node, report: Report) -> Any:
        """Read text, a number or true/false."""
        if isinstance(node, Scalar) and node.value is not None:
            return node.value
        return _wrong(node, report, "a single value")

    def schema(self) -> dict[str, Any]:
        """Any scalar."""
        return {"type": ["string", "number", "boolean"]}


class JsonKind(msgspec.Struct, frozen=True):
    """A mapping whose content is free."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a mapping as plain JSON."""
        return to_json(node) if isinstance(node, Mapping) else _wrong(node, report, "a mapping")

    def schema(self) -> dict[str, Any]:
        """Any object."""
        return {"type": "object"}


class ListKind(msgspec.Struct, frozen=True):
    """A list of one kind; `single` lets one bare value stand for a list of one."""

    item: Kind
    single: bool = False

    def read(self, node: Node, report: Report) -> Any:
        """Read every item, so that every mistake is reported."""
        if isinstance(node, ListNode):
            values = [self.item.read(item, report) for item in node.items]
        elif self.single and isinstance(node, Scalar) and node.value is not None:
            values = [self.item.read(node, report)]
        else:
            return _wrong(node, report, "a list", "write [a, b] or one '- item' per line")
        return tuple(value for value in values if value is not BAD)

    def schema(self) -> dict[str, Any]:
        """An array, or one item where that is allowed."""
        array = {"type": "array", "items": self.item.schema()}
        return {"anyOf": [array, self.item.schema()]} if self.single else array


class Field(msgspec.Struct, frozen=True):
    """One key of a record."""

    kind: Kind
    doc: str
    required: bool = False


class RecordKind(msgspec.Struct, frozen=True):
    """A mapping with known keys; `build` makes the value of what was read."""

    fields: dict[str, Field]
    build: Callable[[dict[str, Any], Node], Any]
    what: str = "this mapping"

    def read(self, node: Node, report: Report) -> Any:
        """Read every known key and refuse the others."""
        if not isinstance(node, Mapping):
            return _wrong(node, report, "a mapping")
        values = read_fields(node, self.fields, report, what=self.what)
        return self.build(values, node)

    def schema(self) -> dict[str, Any]:
        """An object without other keys."""
        properties = {
            name: {"description": field.doc, **field.kind.schema()}
            for name, field in self.fields.items()
        }
        required = [name for name, field in self.fields.items() if field.required]
        base: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        return base | ({"required": required} if required else {})


class MapKind(msgspec.Struct, frozen=True):
    """A mapping of free names to records; `build` gets the name, its place and the record."""

    name: TextKind
    record: RecordKind
    build: Callable[[str, Place, Any], Any]

    def read(self, node: Node, report: Report) -> Any:
        """Read every entry, also after a bad one."""
        if not isinstance(node, Mapping):
            return _wrong(node, report, f"a mapping of names, each with {self.record.what}")
        found = []
        for key, value in node.pairs:
            name = self.name.read(key, report)
            record = self.record.read(value, report)
            if name is not BAD and record is not BAD:
                found.append(self.build(key.text, key.place, record))
        return tuple(found)

    def schema(self) -> dict[str, Any]:
        """An object whose keys are names."""
        return {
            "type": "object",
            "propertyNames": self.name.schema(),
            "additionalProperties": self.record.schema(),
        }


def file_kind(file: str, key: str, entries: MapKind, doc: str) -> RecordKind:
    """A file that holds entries under one key, beside the version of its format."""
    version = Field(WholeKind(1, 1), "Version of this format: 1")
    fields = {"version": version, key: Field(entries, doc, required=True)}
    return RecordKind(fields, lambda values, _node: values.get(key, ()), file)


def read_fields(
    node: Mapping, fields: dict[str, Field], report: Report, *, what: str
) -> dict[str, Any]:
    """Read the known keys that are well written; report the others and the missing ones."""
    values: dict[str, Any] = {}
    for key, value in node.pairs:
        field = fields.get(key.text)
        if field is None:
            message = f"{key.text!r} is not a key of {what}"
            report.add(key.place, "unknown_key", message, did_you_mean(key.text, fields))
        else:
            values[key.text] = field.kind.read(value, report)
    for name, field in fields.items():
        if field.required and name not in values:
            report.add(node.place, "missing_key", f"{what} needs the key {name!r}", field.doc)
    return {name: value for name, value in values.items() if value is not BAD}


class DistinctKind(ListKind, frozen=True):
    """A list that is not empty, not long, and says nothing twice."""

    most: int = _MAX_ENTRIES

    def read(self, node: Node, report: Report) -> Any:
        """Read the entries."""
        if isinstance(node, ListNode) and not node.items:
            hint = "leave the key out, or name something"
            report.add(node.place, "wrong_type", "expected entries, found an empty list", hint)
            return BAD
        if isinstance(node, ListNode) and len(node.items) > self.most:
            message = f"{len(node.items):,} entries; {self.most} are the limit"
            report.add(node.place, "too_large", message, "keep those that matter most")
            return BAD
        found = super().read(node, report)
        if isinstance(node, ListNode):
            _refuse_repeats(node, report)
        return found

    def schema(self) -> dict[str, Any]:
        """An array inside bounds, or one entry where that is allowed."""
        bounds = {"minItems": 1, "maxItems": self.most, "uniqueItems": True}
        array = {"type": "array", "items": self.item.schema(), **bounds}
        return {"anyOf": [array, self.item.schema()]} if self.single else array


def _refuse_repeats(node: ListNode, report: Report) -> None:
    seen: set[str] = set()
    for item in node.items:
        if not isinstance(item, Scalar):
            continue
        plain = " ".join(item.text.split()).casefold()
        if plain in seen:
            message = f"{item.text!r} stands here twice"
            report.add(item.place, "duplicate_key", message, "keep one of them")
        seen.add(plain)


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
        elif isinstance(present, ListNode):
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
            report.add(place, "invalid_schema", message, _SCHEMAS)
        return BAD if mistakes else schema


def nearest_place(places: MappingType[Path, Place], path: Path) -> Place:
    """The place of a part, or of the innermost part around it that has one."""
    while path not in places:
        path = path[:-1]
    return places[path]
