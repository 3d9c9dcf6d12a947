"""extensions.yaml: a catalogue of extensions and channels."""

from typing import Any

from remit.config.descriptor_keys import DESCRIPTION, NAME, SHARED, EntryKind
from remit.config.kinds import BAD, Field, ListKind, RecordKind, Report, TextKind
from remit.config.nodes import Node, parse_yaml
from remit.config.skill_file import shown_name
from remit.model.descriptor import Descriptor, SourceRef
from remit.model.place import Place

EXTENSION_FILE = "extensions.yaml"
CHANNEL_CATEGORY = "communication"
_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


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
