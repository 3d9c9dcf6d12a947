"""capabilities.yaml: its keys, and how the file becomes capabilities."""

import math
from typing import Any

import msgspec

from remit.config.strict.kinds import (
    BAD,
    ChoiceKind,
    Field,
    FlagKind,
    JsonKind,
    ListKind,
    MapKind,
    RecordKind,
    Report,
    SchemaKind,
    TextKind,
    WholeKind,
    file_kind,
)
from remit.config.strict.yaml import Mapping, Node, Scalar, to_json
from remit.config.strict.yaml import Sequence as ListNode
from remit.errors import InvalidDataError, InvalidPatternError, Place
from remit.model.capability import (
    INJECT_MODES,
    MAX_MOUNT_BYTES,
    MAX_MOUNTS,
    STATUSES,
    Capability,
    Mount,
)
from remit.model.limits import LIMIT_NAMES, PREFIX_LIMIT, Limits
from remit.model.names import EventPattern, PlacedPattern, Ref
from remit.model.paths import ROOT, parse_file_path

_FIELDS: dict[str, Field] = {
    "path": Field(TextKind(limit=1024), "Its absolute path, as in /docs/guide.md", required=True),
    "content": Field(TextKind(limit=2 * MAX_MOUNT_BYTES), "What is in it", required=True),
    "encoding": Field(
        ChoiceKind(("text", "base64")), "How the content is written here; text when absent"
    ),
    "read_only": Field(
        FlagKind(), "False: a holder may change it in its own session; true when absent"
    ),
}


def _placed(values: dict[str, Any], node: Node) -> tuple[dict[str, Any], Place]:
    return values, node.place


MOUNT = RecordKind(_FIELDS, _placed, "a mount")


class MountsKind(msgspec.Struct, frozen=True):
    """A list of mounts of which no two are in each other's way."""

    def read(self, node: Node, report: Report) -> Any:
        """Read every mount, so that every mistake is reported."""
        found = ListKind(MOUNT).read(node, report)
        if found is BAD:
            return BAD
        if isinstance(node, ListNode) and len(node.items) > MAX_MOUNTS:
            message = f"more than {MAX_MOUNTS} mounts"
            report.add(node.place, "too_large", message, "put some into another capability")
            return BAD
        mounts = (_mount(values, place, report) for values, place in found)
        return tuple(mount for mount in mounts if mount is not None)

    def schema(self) -> dict[str, Any]:
        """An array of mounts."""
        return {"type": "array", "items": MOUNT.schema(), "maxItems": MAX_MOUNTS}


def _mount(values: dict[str, Any], place: Place, report: Report) -> Mount | None:
    if "path" not in values or "content" not in values:
        return None  # reported by the record
    content = _content(values, place, report)
    try:
        path = parse_file_path(values["path"])
    except InvalidDataError as error:
        report.add(place, "invalid_path", error.message, error.hint)
        return None
    if path == ROOT:
        report.add(place, "invalid_path", "'/' is a directory", "name a file in it")
        return None
    return None if content is None else Mount(path, content, values.get("read_only", True))


def _content(values: dict[str, Any], place: Place, report: Report) -> bytes | None:
    content: bytes = values["content"].encode()
    if values.get("encoding") == "base64":
        import binascii  # noqa: PLC0415 - few capabilities bring files

        try:
            content = binascii.a2b_base64(content, strict_mode=True)
        except binascii.Error as error:
            message = f"the content is not base64: {error}"
            report.add(place, "invalid_content", message, "or leave 'encoding' out for text")
            return None
    if len(content) > MAX_MOUNT_BYTES:
        message = f"the file has more than {MAX_MOUNT_BYTES:,} bytes"
        report.add(place, "too_large", message, "shorten it")
        return None
    return content


class VersionKind(TextKind, frozen=True):
    """A version; one that looks like a number is read as it was written."""

    def read(self, node: Node, report: Report) -> Any:
        """Read text, or a number as text."""
        if isinstance(node, Scalar) and type(node.value) in (int, float):
            node = Scalar(node.text, node.text, node.place)
        return super().read(node, report)

    def schema(self) -> dict[str, Any]:
        """A string or a number."""
        return {"type": ["string", "number"]}


class MetadataKind(JsonKind, frozen=True):
    """Any mapping, inside bounds: it is kept and shown, and nothing ever looks into it."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a mapping as plain JSON."""
        if not isinstance(node, Mapping):
            return super().read(node, report)
        trouble = _too_deep_or_endless(node) or _too_large(node)
        if trouble:
            report.add(*trouble)
            return BAD
        return to_json(node)


def _too_deep_or_endless(top: Node) -> tuple[Any, str, str, str] | None:
    waiting: list[tuple[int, Node]] = [(1, top)]
    for depth, node in waiting:  # grows while it is walked
        if isinstance(node, Scalar):
            if isinstance(node.value, float) and not math.isfinite(node.value):
                message = f"{node.text} is larger than any number can be"
                return node.place, "out_of_range", message, f'write "{node.text}"'
        elif depth > MAX_METADATA_DEPTH:
            message = f"metadata is nested deeper than {MAX_METADATA_DEPTH} levels"
            return node.place, "too_deep", message, "flatten it"
        elif isinstance(node, ListNode):
            waiting += [(depth + 1, item) for item in node.items]
        else:
            waiting += [(depth + 1, value) for _, value in node.pairs]
    return None


def _too_large(node: Node) -> tuple[Any, str, str, str] | None:
    if len(msgspec.json.encode(to_json(node))) <= MAX_METADATA_BYTES:
        return None
    message = f"metadata has more than {MAX_METADATA_BYTES:,} bytes"
    return node.place, "too_large", message, "keep it elsewhere, and name the place here"


REMARK_FIELDS: dict[str, Field] = {
    "version": Field(VersionKind(limit=64), "Version of this definition"),
    "author": Field(TextKind(limit=200), "Who wrote it"),
    "metadata": Field(MetadataKind(), "Whatever else is to be noted; never interpreted"),
}
"""What a definition may say about itself beside what it gives."""

CAPABILITY_NAME = r"[a-z][a-z0-9_-]{0,63}"
MODEL_TOOL = r"[A-Za-z][A-Za-z0-9_-]*"
MAX_METADATA_BYTES = 16_384
MAX_METADATA_DEPTH = 16


def _parse_pattern(text: str, place: Place, report: Report) -> PlacedPattern | None:
    try:
        pattern = EventPattern.parse(text)
    except InvalidPatternError as error:
        report.add(place, error.code, error.message, error.hint)
        return None
    if pattern.is_everything:
        hint = "name the events, or a prefix as in 'state:*'"
        report.add(place, "bare_wildcard", "a capability cannot hold every event", hint)
        return None
    return PlacedPattern(pattern, place)


class PatternKind(TextKind, frozen=True):
    """An event pattern."""

    def read(self, node: Node, report: Report) -> Any:
        """Read a pattern with its place."""
        text = super().read(node, report)
        return BAD if text is BAD else _parse_pattern(text, node.place, report) or BAD

    def schema(self) -> dict[str, Any]:
        """A string such as 'state:get' or 'state:*'."""
        return {"type": "string", "pattern": "^[a-z][a-z0-9_]*:[a-z0-9_.:*-]+$"}


def _limits(values: dict[str, Any], _node: Node) -> Limits:
    return Limits(**values)


LIMITS = RecordKind(
    {
        name: Field(WholeKind(), f"{name.replace('_', ' ')}; the smallest of several sources wins")
        for name in LIMIT_NAMES
        if name != PREFIX_LIMIT
    }
    | {
        PREFIX_LIMIT: Field(
            ListKind(TextKind(limit=512)),
            "Keys of the shared state must start with one of these; of several lists all count",
        )
    },
    _limits,
    "limits",
)
_TEXTS = ListKind(TextKind())
CAPABILITY_REF = TextKind(Ref, pattern=CAPABILITY_NAME, what="a capability name")
_REFS = ListKind(CAPABILITY_REF, single=True)

CAPABILITY_FIELDS: dict[str, Field] = {
    "description": Field(TextKind(), "What it lets an agent do, in one line", required=True),
    "event_patterns": Field(
        ListKind(PatternKind()),
        "Events it grants, by name or by a prefix ending in '*'; "
        "absent: the handlers that name this capability",
    ),
    "claude_tools": Field(
        ListKind(TextKind(Ref, pattern=MODEL_TOOL, what="a model tool")),
        "Host-side tools such as WebFetch; a name space of their own",
    ),
    "requires": Field(_REFS, "Capabilities that come with it"),
    "always_included": Field(FlagKind(), "Every profile gets it"),
    "mcp_tools": Field(FlagKind(), "Whether tool lists show its events; never grants"),
    "resource_limits": Field(LIMITS, "Limits that come with it"),
    "security_review_required": Field(
        FlagKind(), "Inert in a profile until an operator approves the pair"
    ),
    "name": Field(TextKind(limit=200), "Name for people"),
    "category": Field(TextKind(limit=200), "Group in lists"),
    "icon": Field(TextKind(limit=100), "Icon in lists"),
    "tags": Field(_TEXTS, "Words to find it by"),
    "features": Field(_TEXTS, "Selling points shown in lists"),
    "status": Field(
        ChoiceKind(STATUSES),
        "available, coming_soon (listed, grants nothing), deprecated (works, warned), "
        "retired (grants nothing)",
    ),
    **REMARK_FIELDS,
    "aliases": Field(_REFS, "Old names that still work, with a warning"),
    "replaces": Field(_REFS, "Names that this capability supersedes"),
    "system_prompt": Field(TextKind(), "Text added to the agent's system prompt"),
    "inject": Field(ChoiceKind(INJECT_MODES), "When the system prompt is added"),
    "skills": Field(_TEXTS, "Skills that belong to it"),
    "config_schema": Field(SchemaKind(), "JSON Schema of its per-agent configuration"),
    "mounts": Field(MountsKind(), "Files that its holders find in their session file system"),
}


def _capability(name: str, place: Place, values: dict[str, Any]) -> Capability:
    return Capability(id=name, place=place, **values)


CAPABILITY_FILE = file_kind(
    "capabilities.yaml",
    "capabilities",
    MapKind(
        TextKind(pattern=CAPABILITY_NAME, what="a capability name"),
        RecordKind(CAPABILITY_FIELDS, lambda values, _node: values, "a capability"),
        _capability,
    ),
    "The definitions, by name",
)


def read_capability_file(node: Node | None, file: str, report: Report) -> tuple[Capability, ...]:
    """Read capabilities.yaml; what could be read is answered even when problems were reported."""
    if node is None:
        report.add(Place(file), "empty_file", "the file is empty", "start with 'capabilities:'")
        return ()
    found = CAPABILITY_FILE.read(node, report)
    return found if isinstance(found, tuple) else ()
