"""extensions.yaml: a catalogue of extensions and channels."""

from collections.abc import Mapping as Names
from typing import Any

import msgspec

from remit.config.definitions.capabilities import CAPABILITY_NAME
from remit.config.strict.kinds import BAD, Field, FlagKind, ListKind, RecordKind, Report, TextKind
from remit.config.strict.yaml import Mapping, Node, Scalar, Sequence, parse_yaml
from remit.errors import Place
from remit.features.skills.skill_file import shown_name
from remit.model.descriptor import Descriptor, SourceRef

DESCRIPTOR_NAME = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}"
NAME = TextKind(pattern=DESCRIPTOR_NAME, what="a name of a capability file")
DESCRIPTION = TextKind(limit=8_192)
_SHORT = TextKind(limit=200)
_SHORTS = ListKind(_SHORT, single=True)

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
EXTENSION_FILE = "extensions.yaml"
CHANNEL_CATEGORY = "communication"
_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


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


def _extension(values: dict[str, Any], node: Node) -> Descriptor:
    module = values.pop("module", "")
    name = values.pop("name", "")
    return Descriptor(
        id=f"extension:{name}",
        kind="extension",
        name=name,
        source=SourceRef("extension", place=node.place, module=module),
        **{"display_name": shown_name(name), **values},
    )


def _channel(values: dict[str, Any], node: Node) -> Descriptor:
    platform = values.pop("platform", "")
    name = values.pop("name", platform)
    return Descriptor(
        id=f"channel:{name}",
        kind="channel",
        name=name,
        category=CHANNEL_CATEGORY,
        source=SourceRef("channel", place=node.place),
        **{"display_name": shown_name(name), **values},
    )


EXTENSION = EntryKind(
    {
        "name": Field(NAME, "Its name; the id is extension:name", required=True),
        "description": Field(DESCRIPTION, "What it adds, in one line", required=True),
        "category": Field(TextKind(limit=200), "Group in the map"),
        "module": Field(
            TextKind(limit=200, pattern=_MODULE, what="a module name"),
            "Python module whose handlers can be loaded",
        ),
        **SHARED,
    },
    _extension,
    "an extension",
)


class _ChannelKind(EntryKind, frozen=True):
    """A channel goes by its name or by its platform."""

    def read(self, node: Node, report: Report) -> Any:
        """Read the channel, which has exactly one of the two."""
        found = super().read(node, report)
        if isinstance(found, Descriptor) and not found.name:
            message = "a channel needs the key 'name' or 'platform'"
            report.add(node.place, "missing_key", message, "the id is channel:name")
            return BAD
        return found


CHANNEL = _ChannelKind(
    {
        "name": Field(NAME, "Its name; the id is channel:name"),
        "platform": Field(NAME, "Its name, when there is no key 'name'"),
        "description": Field(DESCRIPTION, "What it reaches, in one line", required=True),
        **SHARED,
    },
    _channel,
    "a channel",
)

CATALOGUE = RecordKind(
    {
        "extensions": Field(ListKind(EXTENSION), "What can be added"),
        "channels": Field(
            ListKind(CHANNEL), f"Ways to reach people; their category is {CHANNEL_CATEGORY}"
        ),
    },
    lambda values, _node: (*values.get("extensions", ()), *values.get("channels", ())),
    EXTENSION_FILE,
)


def read_extension_file(raw: bytes, file: str, report: Report) -> tuple[Descriptor, ...]:
    """Read a catalogue; an entry with a problem is left out, the others are answered."""
    node, problems = parse_yaml(raw, file)
    report.extend(problems)
    if node is None and not problems:
        report.add(Place(file), "empty_file", "the file is empty", "start with 'extensions:'")
    if node is None or problems:  # of two equal keys nobody knows which one was meant
        return ()
    found = CATALOGUE.read(node, report)
    return found if isinstance(found, tuple) else ()
