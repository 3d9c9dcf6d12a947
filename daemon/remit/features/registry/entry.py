"""An entry of the registry: one implementation of a capability, or one skill.

A capability says what is done, an implementation how. A base tool is an event; a composed tool is
code over others; a skill is a text that a model knows. Every event and every skill is an entry by
itself; a declaration adds to it what cannot be read off it.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from remit.errors import Place
from remit.model.descriptor import Descriptor, SourceRef
from remit.text.unicode import one_line

Layer = Literal["base", "composed", "skill"]
HealthState = Literal["unverified", "pending", "green", "flaky", "red", "rejected", "unavailable"]

TAG_LIMIT = 64
"""Characters of a tag."""
MOST_TAGS = 64
MOST_IDS = 256
ID_LIMIT = 256

Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=TAG_LIMIT)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_LIMIT)]
Tags = Annotated[tuple[Tag, ...], msgspec.Meta(max_length=MOST_TAGS)]
Ids = Annotated[tuple[Id, ...], msgspec.Meta(max_length=MOST_IDS)]


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool was given once, and what it answered."""

    input: Any = None
    output: Any = None
    note: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One implementation, or one skill."""

    id: str
    """That of its descriptor, as in 'tool:state:set' or 'skill:git'."""
    capability: str
    """What it does; several implementations may have one capability."""
    layer: Layer
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    """Folded by `tag`, sorted, each once."""
    event: str = ""
    """What is called; empty for skills."""
    applies_to: tuple[str, ...] = ()
    """Of a skill: ids or capabilities of the tools that it helps with."""
    dependencies: tuple[str, ...] = ()
    """Ids of the tools that it cannot do without."""
    supersedes: str = ""
    """The id of what it takes the place of."""
    version: str = ""
    examples: tuple[Example, ...] = ()
    variants: Mapping[str, str] = {}
    """Of a skill: by model, the id of the skill to give it instead."""
    conflicts_with: tuple[str, ...] = ()
    """Ids of skills that say something else."""
    available: bool = True
    unavailable_because: str = ""
    source: SourceRef = SourceRef("event")
    """Where its text is read, as of a descriptor."""
    declared_by: str = ""
    """Who declared what it does not say itself; empty: nobody, or a file."""
    place: Place | None = None
    """Where that is written; None: it was not read from a file."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is added to an entry that is there by itself; what is absent stays as it is."""

    id: Id
    capability: Id = ""
    description: Annotated[str, msgspec.Meta(max_length=4_096)] = ""
    tags: Tags = ()
    """Added to those that it has."""
    applies_to: Ids = ()
    dependencies: Ids = ()
    supersedes: Annotated[str, msgspec.Meta(max_length=ID_LIMIT)] = ""
    version: Annotated[str, msgspec.Meta(max_length=64)] = ""
    examples: Annotated[tuple[Example, ...], msgspec.Meta(max_length=32)] = ()
    variants: Annotated[dict[Id, Id], msgspec.Meta(max_length=64)] = {}
    conflicts_with: Ids = ()


def tag(text: str) -> str:
    """A tag as it is compared: in any case, width and composition of letters it is the same."""
    for _ in range(2):  # folding may compose letters that fold again
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return one_line(one_line(text)[:TAG_LIMIT])


def tags_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Tags folded, sorted and each once; empty ones are left out."""
    return tuple(sorted({folded for text in texts if (folded := tag(text))}))


def capability_of(id_: str) -> str:
    """The capability of an entry that declares none: its id without the kind."""
    return id_.partition(":")[2] or id_


def entry_of(descriptor: Descriptor) -> Entry | None:
    """The entry that a descriptor is by itself; None for what is neither tool nor skill."""
    is_skill = descriptor.kind == "skill"
    if not is_skill and not (descriptor.kind == "tool" and descriptor.event):
        return None
    return Entry(
        id=descriptor.id,
        capability=capability_of(descriptor.id),
        layer="skill" if is_skill else "base",
        name=descriptor.name,
        description=descriptor.description,
        tags=tags_of((descriptor.category, descriptor.server, *descriptor.tags)),
        event=descriptor.event,
        applies_to=descriptor.composed_with if is_skill else (),
        available=descriptor.available,
        unavailable_because=descriptor.unavailable_because,
        source=descriptor.source,
    )


def declared(
    entry: Entry, declaration: Declaration, *, by: str = "", place: Place | None = None
) -> Entry:
    """The entry with what a declaration adds; tags are joined, all else is replaced."""
    given = {
        name: value
        for name in _REPLACED
        if (value := getattr(declaration, name))  # absent: it stays as it is
    }
    if declaration.tags:
        given["tags"] = tags_of((*entry.tags, *declaration.tags))
    return msgspec.structs.replace(entry, **given, declared_by=by, place=place)


_REPLACED = (
    *("capability", "description", "applies_to", "dependencies", "supersedes", "version"),
    *("examples", "variants", "conflicts_with"),
)
