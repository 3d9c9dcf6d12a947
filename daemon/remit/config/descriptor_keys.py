"""The keys that manifests and catalogues of extensions share."""

from collections.abc import Mapping as Names
from typing import Any

import msgspec

from remit.config.capability_file import CAPABILITY_NAME
from remit.config.kinds import BAD, Field, FlagKind, ListKind, RecordKind, Report, TextKind
from remit.config.nodes import Mapping, Node, Scalar, Sequence

DESCRIPTOR_NAME = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}"
NAME = TextKind(pattern=DESCRIPTOR_NAME, what="a name of a capability file")
DESCRIPTION = TextKind(limit=8_192)
_SHORT = TextKind(limit=200)
_SHORTS = ListKind(_SHORT, single=True)


class _HoldersKind(ListKind, frozen=True):
    """Capabilities of which one must be held; a list of none would say the opposite of itself."""

    def read(self, node: Node, report: Report) -> Any:
        """Read the names."""
        found = super().read(node, report)
        if found == () and isinstance(node, Sequence) and not node.items:
            hint = "leave the key out to show it to everybody"
            report.add(node.place, "wrong_type", "expected capabilities, found an empty list", hint)
        return found

    def schema(self) -> dict[str, Any]:
        """An array that is not empty, or one name."""
        return {
            "anyOf": [
                {"type": "array", "items": self.item.schema(), "minItems": 1},
                self.item.schema(),
            ]
        }


SHARED: dict[str, Field] = {
    "display_name": Field(_SHORT, "Name for people"),
    "tags": Field(_SHORTS, "Words for what it is used for"),
    "required_secrets": Field(_SHORTS, "Names of the secrets it needs; never their values"),
    "required_tools": Field(_SHORTS, "Ids, events or names of the tools it cannot do without"),
    "composed_with": Field(_SHORTS, "Ids, events or names of what it is used together with"),
    "examples": Field(ListKind(TextKind(limit=1_000)), "Requests that it answers"),
    "has_side_effects": Field(FlagKind(), "Whether using it changes something"),
    "available": Field(FlagKind(), "Whether it can be used now; true when absent"),
    "unavailable_because": Field(TextKind(limit=500), "Why it cannot be used now"),
    "capabilities": Field(
        _HoldersKind(TextKind(pattern=CAPABILITY_NAME, what="a capability name"), single=True),
        "Only holders of one of these capabilities see it",
    ),
}

ALIASES = {
    "displayName": "display_name",
    "requiredSecrets": "required_secrets",
    "requiredTools": "required_tools",
    "composedWith": "composed_with",
    "hasSideEffects": "has_side_effects",
    "inputSchema": "input_schema",
    "skillContent": "content",
}
"""Spellings of other programs, and the keys they stand for."""


class EntryKind(RecordKind, frozen=True):
    """A record that is left out as a whole when anything in it is wrong; knows the old spellings.

    A collection that leaves bad parts out would show an entry whose `capabilities` were misspelt to
    everybody.
    """

    aliases: Names[str, str] = msgspec.field(default_factory=lambda: ALIASES)

    def read(self, node: Node, report: Report) -> Any:
        """Read the record, or report every mistake in it."""
        own = Report()
        plain = node
        if isinstance(node, Mapping):
            plain = with_plain_keys(node, self.fields, own, self.aliases)
        found = super().read(plain, own)
        report.extend(own.problems)
        return BAD if own.count else found

    def schema(self) -> dict[str, Any]:
        """The schema of the record, with both spellings."""
        schema = super().schema()
        properties = schema["properties"]
        others = {
            alias: {**properties[name], "description": f"Another spelling of {name}"}
            for alias, name in self.aliases.items()
            if name in self.fields
        }
        return schema | {"properties": properties | others}


def with_plain_keys(
    node: Mapping,
    known: Names[str, object],
    report: Report,
    aliases: Names[str, str] = ALIASES,
) -> Mapping:
    """The mapping with our own spelling of its keys; one key in two spellings stands twice."""
    pairs: list[tuple[Scalar, Node]] = []
    written = {key.text for key, _value in node.pairs}
    for key, value in node.pairs:
        name = aliases.get(key.text, key.text)
        if name != key.text and name in known and name in written:
            message = f"{key.text!r} is another spelling of {name!r}, which stands here too"
            report.add(key.place, "duplicate_key", message, "keep one of them")
        plain = name if name in known else key.text
        written.add(plain)
        pairs.append((Scalar(plain, plain, key.place), value))
    return Mapping(pairs, node.place)
