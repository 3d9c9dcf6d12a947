"""What is shown of one descriptor: its line in the summary, its full text, its schema as lines.

Written once for each index and remembered. Names of secrets are shown, never values: a descriptor
has none.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from remit.features.discovery.cutting import closed, shortened_to
from remit.model.descriptor import Descriptor
from remit.text.unicode import many_lines, one_line

if TYPE_CHECKING:
    from remit.features.discovery.index import Index

MAX_CONTENT = 400_000
"""Characters of a skill that are looked at."""
_NAME = 100
_DESCRIPTION = 240
_PARAMETERS = 10
_NEEDS = 6
_CONTENTS = 64
_LINES = 20_000
LABEL = 40
"""Characters of a name in a list of groups."""
_SIDE_EFFECTS = "Has side effects: it changes something outside of this conversation."
_UNKNOWN_EFFECT = "May have side effects: its author has not said what it changes."
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n.{0,20000}?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
"""The head of a SKILL.md: what it says is in the descriptor already."""
_DEPTH = 3
_SCHEMA_LINES = 400
"""Lines of one schema; more would be cut from every budget anyway."""
_CHOICES = 24
_VALUE = 80
"""Characters of one default or choice."""

Schema = Mapping[str, Any]


class Line:
    """The parts of a summary line; the description is what can be shortened."""

    __slots__ = ("about", "extras", "full_name", "name")

    def __init__(self, descriptor: Descriptor, missing: Sequence[str] = ()) -> None:
        self.name = f"{name_of(descriptor)} ({descriptor.kind})."
        self.full_name = f"{shortened_to(one_line(descriptor.id), _NAME)} ({descriptor.kind})."
        """For when another hit has the same name."""
        about = shortened_to(one_line(descriptor.description), _DESCRIPTION)
        self.about = about if not about or about[-1] in ".!?…。！？" else f"{about}."  # noqa: RUF001
        self.extras = " ".join(_extras(descriptor, missing))

    def text(self, name: str) -> str:
        """All of it, behind this name."""
        return " ".join(part for part in (name, self.about, self.extras) if part)


class Texts:
    """The texts of the descriptors of one index."""

    def __init__(self, index: "Index") -> None:
        # The descriptors alone: this is kept for as long as the index is, and must not hold it.
        self._descriptors = index.descriptors
        self._missing = index.graph.missing
        self._lines: dict[int, Line] = {}
        self._details: dict[int, tuple[str, str]] = {}

    def line(self, row: int) -> Line:
        """The summary line of a row."""
        known = self._lines.get(row)
        if known is None:
            known = Line(self._descriptors[row], self._missing.get(row, ()))
            if len(self._lines) >= _LINES:
                self._lines.clear()
            self._lines[row] = known
        return known

    def detail(self, row: int, content: str) -> str:
        """Everything about a row, with the content of the skill that it is, if it is one."""
        known = self._details.get(row)
        if known is not None and known[0] == content:
            return known[1]
        text = detail_text(self._descriptors[row], content, self._missing.get(row, ()))
        if len(self._details) >= _CONTENTS:
            self._details.clear()
        self._details[row] = (content, text)
        return text


_TEXTS: WeakKeyDictionary["Index", Texts] = WeakKeyDictionary()


def texts_of(index: "Index") -> Texts:
    """The texts of an index, for as long as there is that index."""
    known = _TEXTS.get(index)
    if known is None:
        known = _TEXTS[index] = Texts(index)
    return known


def name_of(descriptor: Descriptor) -> str:
    """The name as it is called, on one line."""
    return shortened_to(one_line(descriptor.name) or one_line(descriptor.id), _NAME)


def label_of(descriptor: Descriptor) -> str:
    """The group that a descriptor stands in: its category, else its server, else its kind."""
    label = one_line(descriptor.category) or one_line(descriptor.server) or descriptor.kind
    return shortened_to(label, LABEL)


def has_content(descriptor: Descriptor) -> bool:
    """Tell whether there is more to read than the descriptor itself."""
    return descriptor.kind == "skill" or bool(descriptor.source.content_file)


def detail_text(descriptor: Descriptor, content: str = "", missing: Sequence[str] = ()) -> str:
    """Everything about a descriptor that a model needs to use it; `missing`: tools it has not."""
    title = one_line(descriptor.title) or name_of(descriptor)
    parts = [f"# {shortened_to(title, _NAME)}\n{_facts(descriptor)}"]
    about = many_lines(descriptor.description)
    text = many_lines(_FRONT_MATTER.sub("", content[:MAX_CONTENT]))
    if about:
        parts.append(closed(about))
    lines = _schema(descriptor)
    if lines:
        parts.append("## Input\n" + "\n".join(lines))
    notes = _notes(descriptor, missing)
    if notes:
        parts.append("\n".join(notes))
    if text:
        parts.append(closed(text))
    return "\n\n".join(parts)


def _facts(descriptor: Descriptor) -> str:
    facts = [f"Id: {one_line(descriptor.id)}", f"Kind: {descriptor.kind}"]
    if descriptor.category:
        facts.append(f"Category: {one_line(descriptor.category)}")
    if descriptor.server:
        facts.append(f"Server: {one_line(descriptor.server)}")
    return " | ".join(facts)


def _schema(descriptor: Descriptor) -> list[str]:
    if descriptor.full_schema is not None:
        return schema_lines(descriptor.full_schema)
    fields = {
        one.name: {"type": one.type, "description": one.description}
        for one in descriptor.parameters
    }
    needed = [one.name for one in descriptor.parameters if one.required]
    return schema_lines({"properties": fields, "required": needed})


def _notes(descriptor: Descriptor, missing: Sequence[str]) -> list[str]:
    notes = []
    if descriptor.required_secrets:
        notes.append(f"Required secrets: {_list(descriptor.required_secrets)}")
    if descriptor.required_tools:
        notes.append(f"Requires: {_list(descriptor.required_tools)}")
    if descriptor.has_side_effects:
        notes.append(_SIDE_EFFECTS if descriptor.is_effect_known else _UNKNOWN_EFFECT)
    if missing or not descriptor.available:
        notes.append(_unavailable(descriptor, missing))
    return notes


def _extras(descriptor: Descriptor, missing: Sequence[str]) -> list[str]:
    extras = []
    names = [one.name for one in descriptor.parameters]
    if names:
        extras.append(f"Params: {_list(names, _PARAMETERS)}.")
    if descriptor.required_tools:
        extras.append(f"Requires: {_list(descriptor.required_tools, _NEEDS)}.")
    if descriptor.required_secrets:
        extras.append(f"Secrets: {_list(descriptor.required_secrets, _NEEDS)}.")
    if descriptor.has_side_effects:
        extras.append("Side effects." if descriptor.is_effect_known else "May have side effects.")
    if missing or not descriptor.available:
        extras.append(_unavailable(descriptor, missing))
    return extras


def _unavailable(descriptor: Descriptor, missing: Sequence[str]) -> str:
    reason = shortened_to(one_line(descriptor.unavailable_because), _NAME).rstrip(".")
    if missing and not reason:
        reason = f"nothing here is called {_list(missing, _NEEDS)}"
    return f"Unavailable: {reason}." if reason else "Unavailable."


def _list(names: Sequence[str], most: int = 50) -> str:
    shown = ", ".join(shortened_to(one_line(name), _NAME) for name in names[:most])
    return shown if len(names) <= most else f"{shown} (+{len(names) - most} more)"


# A JSON Schema as lines that a model reads faster than JSON: one parameter a line.


def schema_lines(schema: Schema) -> list[str]:
    """The parameters of a schema, those that are required first."""
    lines: list[str] = []
    for line in _fields(schema, _definitions(schema), 0):
        lines.append(line)
        if len(lines) == _SCHEMA_LINES:
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
