"""registry.yaml: what operators declare about tools and skills, read strictly and with places.

Reading knows the form alone. Whether what is named exists is asked of the entries that there are:
so a file can be read where nothing runs.
"""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from remit.config.definitions.files import Files
from remit.config.strict.kinds import (
    BAD,
    DistinctKind,
    Field,
    ListKind,
    MapKind,
    RecordKind,
    Report,
    TextKind,
    WholeKind,
)
from remit.config.strict.yaml import MAX_BYTES, Mapping, Node, parse_yaml, to_json
from remit.errors import Place, Problem, by_place
from remit.features.registry.entry import (
    ID_LIMIT,
    MOST_IDS,
    MOST_TAGS,
    TAG_LIMIT,
    Declaration,
    Example,
    tags_of,
)
from remit.model.names import did_you_mean

MAX_ENTRIES = 20_000
_MOST_EXAMPLES = 32
_MOST_VARIANTS = 64
_TOOL = r"tool:\S{1,250}"
_SKILL = r"skill:\S{1,250}"


class EntryReference(msgspec.Struct, frozen=True):
    """An entry that another one names, and where it does."""

    field: str
    name: str
    place: Place


class DeclaredEntry(msgspec.Struct, frozen=True):
    """What a file says about one tool or skill."""

    declaration: Declaration
    place: Place
    references: tuple[EntryReference, ...] = ()


class RegistryFile(msgspec.Struct, frozen=True):
    """What a file says, and what is wrong with it; with an error in it nothing of it counts."""

    entries: tuple[DeclaredEntry, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What stops the load."""
        return tuple(problem for problem in self.problems if problem.is_error)


class _Name(msgspec.Struct, frozen=True):
    text: str
    place: Place


class _AnyKind(msgspec.Struct, frozen=True):
    """Whatever JSON can say."""

    def read(self, node: Node, _report: Report) -> Any:
        return to_json(node)

    def schema(self) -> dict[str, Any]:
        return {}


class _VariantsKind(msgspec.Struct, frozen=True):
    """Models, and the id of the skill for each."""

    model: TextKind
    skill: TextKind

    def read(self, node: Node, report: Report) -> Any:
        if not isinstance(node, Mapping):
            return RecordKind({}, lambda values, _node: values, "the variants").read(node, report)
        if len(node.pairs) > _MOST_VARIANTS:
            message = f"{len(node.pairs):,} variants; {_MOST_VARIANTS} are the limit"
            report.add(node.place, "too_large", message, "keep the models that are in use")
            return BAD
        found = {}
        for key, value in node.pairs:
            model, skill = self.model.read(key, report), self.skill.read(value, report)
            if model is not BAD and skill is not BAD:
                found[model] = skill
        return found

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "propertyNames": self.model.schema(),
            "additionalProperties": self.skill.schema(),
            "maxProperties": _MOST_VARIANTS,
        }


def _ids(pattern: str, what: str) -> DistinctKind:
    return DistinctKind(TextKind(_Name, ID_LIMIT, pattern, what), most=MOST_IDS)


_TEXT = TextKind(limit=4_096)
_EXAMPLE = RecordKind(
    {
        "input": Field(_AnyKind(), "What it was given"),
        "output": Field(_AnyKind(), "What it answered"),
        "note": Field(TextKind(limit=1_000), "What is special about it"),
    },
    lambda values, _node: Example(**values),
    "an example",
)
_COMMON: dict[str, Field] = {
    "capability": Field(
        TextKind(limit=ID_LIMIT, pattern=r"\S+", what="a capability"),
        "What it does; those with the same capability are chosen among",
    ),
    "description": Field(_TEXT, "What it is good for, in your words"),
    "tags": Field(
        DistinctKind(TextKind(limit=TAG_LIMIT), most=MOST_TAGS),
        "Contexts that it is made for, in any case",
    ),
    "dependencies": Field(_ids(_TOOL, "the id of a tool"), "Tools that it cannot do without"),
    "version": Field(TextKind(limit=64), "Shown, and compared with nothing"),
    "examples": Field(ListKind(_EXAMPLE), "What it was given, and what it answered"),
}
TOOL_FIELDS = _COMMON | {
    "supersedes": Field(
        TextKind(_Name, ID_LIMIT, _TOOL, "the id of a tool"), "The tool whose place it takes"
    ),
}
SKILL_FIELDS = _COMMON | {
    "supersedes": Field(
        TextKind(_Name, ID_LIMIT, _SKILL, "the id of a skill"), "The skill whose place it takes"
    ),
    "applies_to": Field(
        _ids(r"\S+", "an id or a capability"), "Ids or capabilities of the tools it helps with"
    ),
    "conflicts_with": Field(_ids(_SKILL, "the id of a skill"), "Skills that say something else"),
    "variants": Field(
        _VariantsKind(TextKind(limit=128), TextKind(_Name, ID_LIMIT, _SKILL, "the id of a skill")),
        "By model, the skill to give it instead",
    ),
}


def _map(pattern: str, what: str, fields: dict[str, Field]) -> MapKind:
    return MapKind(
        TextKind(pattern=pattern, limit=ID_LIMIT, what=f"the id of {what}"),
        RecordKind(fields, lambda values, _node: values, what),
        _entry,
    )


def _entry(name: str, place: Place, values: dict[str, Any]) -> DeclaredEntry:
    references = tuple(_references(values))
    plain = {field: _plain(value) for field, value in values.items()}
    if "tags" in plain:
        plain["tags"] = tags_of(plain["tags"])
    return DeclaredEntry(Declaration(id=name, **plain), place, references)


def _references(values: dict[str, Any]) -> Iterator[EntryReference]:
    for field, value in values.items():
        each = value.values() if isinstance(value, dict) else value
        for one in each if isinstance(value, tuple | dict) else (value,):
            if isinstance(one, _Name):
                yield EntryReference(field, one.text, one.place)


def _plain(value: Any) -> Any:
    if isinstance(value, _Name):
        return value.text
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


REGISTRY_FILE = RecordKind(
    {
        "version": Field(WholeKind(1, 1), "Version of this format: 1"),
        "tools": Field(_map(_TOOL, "a tool", TOOL_FIELDS), "What is said of tools, by id"),
        "skills": Field(_map(_SKILL, "a skill", SKILL_FIELDS), "What is said of skills, by id"),
    },
    lambda values, _node: (*values.get("tools", ()), *values.get("skills", ())),
    "registry.yaml",
)


def parse_registry(raw: bytes, path: Path) -> RegistryFile:
    """Read the bytes of a file; every mistake is told with its place."""
    file, report = str(path), Report()
    node, problems = parse_yaml(raw, file)
    report.extend(problems)
    found: Any = ()
    if node is None and not problems:
        report.add(Place(file), "empty_file", "the file is empty", "start with 'version: 1'")
    elif node is not None:
        found = REGISTRY_FILE.read(node, report)
    entries: tuple[DeclaredEntry, ...] = () if found is BAD else found
    if len(entries) > MAX_ENTRIES:
        message = f"{len(entries):,} entries; {MAX_ENTRIES:,} are the limit"
        report.add(Place(file), "too_large", message, "declare what cannot be read off the things")
    for entry in entries:
        _check_itself(entry, report)
    shown = Files(file, contents={file: raw}).illustrate(report.shown())
    return RegistryFile(entries, tuple(sorted(shown, key=by_place)))


def _check_itself(entry: DeclaredEntry, report: Report) -> None:
    examples = len(entry.declaration.examples)
    if examples > _MOST_EXAMPLES:
        message = f"{examples:,} examples; {_MOST_EXAMPLES} are the limit"
        report.add(entry.place, "too_large", message, "keep those that teach most")
    for one in entry.references:
        if one.name == entry.declaration.id:
            message = f"{one.name!r} names itself in {one.field!r}"
            report.add(one.place, "self_reference", message, "take it out")


def inspect_registry(path: Path) -> RegistryFile:
    """Read a file and tell everything about it; an absent one declares nothing."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return RegistryFile()
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        return RegistryFile((), (Problem(Place(str(path)), "unreadable", message),))
    return parse_registry(raw, path)


def unknown_references(
    entries: Iterable[DeclaredEntry], ids: Collection[str], capabilities: Collection[str]
) -> tuple[Problem, ...]:
    """What a file names and nothing is, each at its place and with what may have been meant.

    Args:
        entries: what the file says.
        ids: the tools and skills that there are.
        capabilities: what they do; the capabilities that the file itself declares count as well.
    """
    entries = tuple(entries)
    declared = {one.declaration.capability for one in entries} - {""}
    broad = {*ids, *capabilities, *declared}
    found = []
    for entry in entries:
        name = entry.declaration.id
        if name not in ids:
            found.append(_unknown(entry.place, name, ids))
        for one in entry.references:
            known = broad if one.field == "applies_to" else ids
            if one.name not in known:
                found.append(_unknown(one.place, one.name, known))
    return tuple(sorted(found, key=by_place))


def _unknown(place: Place, name: str, known: Collection[str]) -> Problem:
    hint = did_you_mean(name, known) or "remit find shows what there is"
    return Problem(place, "unknown_reference", f"there is no {name!r}", hint)
