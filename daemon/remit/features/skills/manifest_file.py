"""CAPABILITY.yaml: one capability in a folder of its own, with SKILL.md and schema.json beside it.

INVARIANT: no path in a manifest leads out of its folder, links followed.
"""

import stat
from pathlib import Path
from typing import Any

import msgspec

from remit.config.strict.files import EscapesFolderError, find_inside, read_inside
from remit.config.strict.json import StrictJsonError, parse_json
from remit.config.strict.kinds import BAD, ChoiceKind, Field, JsonKind, Report, TextKind
from remit.config.strict.yaml import MAX_DEPTH, Node, parse_yaml, read_text
from remit.errors import InvalidNameError, Place
from remit.features.skills.extension_file import (
    DESCRIPTION,
    DESCRIPTOR_NAME,
    NAME,
    SHARED,
    EntryKind,
)
from remit.features.skills.skill_file import SKILL_FILE, shown_name
from remit.model.descriptor import DESCRIPTOR_KINDS, Descriptor, SourceRef, parameters_of
from remit.model.names import Ref, parse_event_name

SCHEMA_FILE = "schema.json"
MAX_SCHEMA = 256 * 1024

MANIFEST_FILE = "CAPABILITY.yaml"
_HINT = "a path in a manifest starts at its folder and stays inside"
_PATH = TextKind(Ref, limit=1_024)
_ID = TextKind(
    Ref, pattern=rf"({'|'.join(DESCRIPTOR_KINDS)}):{DESCRIPTOR_NAME}", what="an id such as tool:x"
)


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
        found = parse_json(text)
    except StrictJsonError as error:
        if error.line:
            place, message = Place(file, error.line, error.column), f"this is not JSON: {error}"
        else:
            place, message = Place(file), f"this JSON is not understood: {error}"
        report.add(place, "json_syntax", message)
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


class _EventKind(TextKind, frozen=True):
    """The name of one event."""

    def read(self, node: Node, report: Report) -> Any:
        """Read an event name."""
        text = super().read(node, report)
        if text is BAD:
            return BAD
        try:
            return parse_event_name(text)
        except InvalidNameError as error:
            report.add(node.place, error.code, error.message, error.hint)
            return BAD


MANIFEST = EntryKind(
    {
        "name": Field(NAME, "Its name", required=True),
        "kind": Field(ChoiceKind(DESCRIPTOR_KINDS), "What it is", required=True),
        "description": Field(DESCRIPTION, "What it does, in one line", required=True),
        "id": Field(_ID, "kind:name when absent; it begins with the kind"),
        "category": Field(TextKind(limit=200), "Group in the map"),
        "event": Field(_EventKind(), "The event that is called; only who may call it sees it"),
        "input_schema": Field(JsonKind(), "JSON Schema of what it is called with"),
        "schema": Field(_PATH, f"File with that schema; {SCHEMA_FILE} when it lies there"),
        "content": Field(_PATH, f"Markdown with its full text; {SKILL_FILE} when it lies there"),
        **SHARED,
    },
    lambda values, _node: values,
    "a manifest",
)


def read_manifest_file(raw: bytes, file: str, folder: Path, report: Report) -> Descriptor | None:
    """Read a manifest and the schema beside it; None after a problem was reported."""
    own = Report()
    node, problems = parse_yaml(raw, file)
    own.extend(problems)
    found = None
    if node is not None:
        found = _manifest(node, file, folder, own)
    elif not problems:
        own.add(Place(file), "empty_file", "the file is empty", "start with 'name:'")
    report.extend(own.problems)
    return None if own.count else found


def _manifest(node: Node, file: str, folder: Path, report: Report) -> Descriptor | None:
    values = MANIFEST.read(node, report)
    if not isinstance(values, dict):
        return None
    beside = _Beside(file, folder, report)
    kind, name = values["kind"], values["name"]
    identity = values.pop("id", None) or Ref(f"{kind}:{name}", node.place)
    if not identity.name.startswith(f"{kind}:"):
        message = f"the id {identity.name!r} does not begin with the kind"
        report.add(identity.place, "invalid_name", message, f"write {kind}:{name}")
    schema = _schema(values, beside, node.place)
    return Descriptor(
        id=identity.name,
        full_schema=schema,
        parameters=parameters_of(schema),
        source=SourceRef(
            "manifest",
            place=Place(file),
            content_file=beside.content(values.pop("content", None)),
            root=str(folder.absolute()),
        ),
        **{"display_name": shown_name(name), **values},
    )


def _schema(values: dict[str, Any], beside: "_Beside", place: Place) -> dict[str, Any] | None:
    path: Ref | None = values.pop("schema", None)
    written: dict[str, Any] | None = values.pop("input_schema", None)
    if written is None:
        return beside.schema(path)
    if path is not None:
        message = "'input_schema' and 'schema' cannot both stand here"
        beside.report.add(path.place, "duplicate_key", message, "keep one of them")
    return checked_schema(written, place, beside.report)


class _Beside:
    """The files beside a manifest: those it names must be there, the usual ones may be."""

    def __init__(self, file: str, folder: Path, report: Report) -> None:
        self._file = file
        self._folder = folder
        self.report = report

    def schema(self, path: Ref | None) -> dict[str, Any] | None:
        """The schema of the file, if there is one."""
        name = path.name if path else SCHEMA_FILE
        try:
            raw = read_inside(self._folder, name, MAX_SCHEMA)
        except FileNotFoundError:
            self._missing(path)
            return None
        except EscapesFolderError as error:
            self._refuse(path, error)
            return None
        return read_schema_file(raw, str(Path(self._file).parent / name), self.report)

    def content(self, path: Ref | None) -> str:
        """The name of the file with the full text; it is read when somebody wants it."""
        name = path.name if path else SKILL_FILE
        try:
            _root, found = find_inside(self._folder, name)
            mode = found.stat().st_mode
        except FileNotFoundError:
            self._missing(path)
            return ""
        except (EscapesFolderError, OSError) as error:
            self._refuse(path, error)
            return ""
        if not stat.S_ISREG(mode):
            self._refuse(path, EscapesFolderError(f"{name!r} is not a file"))
        return name

    def _missing(self, path: Ref | None) -> None:
        if path is not None:
            self.report.add(path.place, "bad_source", f"there is no file {path.name!r}", _HINT)

    def _refuse(self, path: Ref | None, error: Exception) -> None:
        place = path.place if path else Place(self._file)
        self.report.add(place, "bad_source", str(error), _HINT)
