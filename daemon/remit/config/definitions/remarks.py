"""The keys `version`, `author` and `metadata`: remarks that are never interpreted."""

import math
from typing import Any

import msgspec

from remit.config.strict.kinds import BAD, Field, JsonKind, Report, TextKind
from remit.config.strict.yaml import Mapping, Node, Scalar, Sequence, to_json

MAX_METADATA_BYTES = 16_384
MAX_METADATA_DEPTH = 16


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
        elif isinstance(node, Sequence):
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
