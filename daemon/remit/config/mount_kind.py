"""Mounts of a capability: files that its holders find in their session file system."""

from typing import Any

import msgspec

from remit.config.kinds import (
    BAD,
    ChoiceKind,
    Field,
    FlagKind,
    ListKind,
    RecordKind,
    Report,
    TextKind,
)
from remit.config.nodes import Node
from remit.config.nodes import Sequence as ListNode
from remit.errors import InvalidDataError
from remit.model.file_path import ROOT, parse_file_path
from remit.model.mount import MAX_MOUNT_BYTES, MAX_MOUNTS, Mount
from remit.model.place import Place

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
