"""Where each part of a free JSON value stands in its file, and schemas that are checked there."""

from collections.abc import Mapping as MappingType
from typing import Any

from remit.config.kinds import BAD, JsonKind, Report
from remit.config.nodes import Mapping, Node, Sequence
from remit.model.json_schema import Path, schema_mistakes, shown
from remit.model.place import Place


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
