"""A picture of profiles and capabilities as plain data; how it is drawn is decided elsewhere.

Profiles stand in the first column. A capability stands one column to the right of whatever requires
it, so arrows run from left to right.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from remit.model.capability import Capability
from remit.policy.catalogue import Catalogue, dependencies_first
from remit.policy.compile import layer_of, resolve

MAX_LINES = 14
MAX_NODES = 100

LineKind = Literal["event", "tool", "absent", "adds", "denies", "more"]
EdgeKind = Literal["grants", "pending", "extends", "requires"]


class NodeLine(msgspec.Struct, frozen=True):
    """One line inside a node."""

    text: str
    kind: LineKind
    denied: bool = False
    note: str = ""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A profile or a capability."""

    id: str
    kind: Literal["profile", "capability"]
    column: int
    title: str
    description: str = ""
    marks: tuple[str, ...] = ()
    lines: tuple[NodeLine, ...] = ()


class Edge(msgspec.Struct, frozen=True, order=True):
    """An arrow between two nodes, by their ids."""

    source: str
    target: str
    kind: EdgeKind


class Picture(msgspec.Struct, frozen=True):
    """All there is to draw, in a stated order."""

    title: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def picture(catalogue: Catalogue, profile: str | None = None) -> Picture:
    """The picture of one profile with all it builds on, or of the whole catalogue.

    Raises:
        NotFoundError: there is no such profile.
    """
    if profile is None:
        profiles = [name for name in catalogue.lineages if name in catalogue.grants]
        capabilities = sorted(catalogue.capabilities)
        about = f"{len(profiles)} profiles and {len(capabilities)} capabilities"
        title = f"Who may do what: {about}"
    else:
        grant = resolve(catalogue, profile)
        profiles = [composition.name for composition in catalogue.lineages[profile]]
        capabilities = sorted({*grant.capabilities, *grant.pending_review})
        about = f"{len(grant.events)} events from {len(grant.capabilities)} capabilities"
        title = f"What {profile} may do: {about}"
    subjects = (profile,) if profile else tuple(profiles)
    compact = len(profiles) + len(capabilities) > MAX_NODES and profile is None
    nodes = [_profile_node(catalogue, name, compact=compact) for name in profiles]
    columns = _columns(catalogue, capabilities)
    nodes += [
        _capability_node(catalogue, name, subjects, columns[name], compact=compact)
        for name in sorted(capabilities, key=lambda name: (columns[name], name))
    ]
    edges = [*_profile_edges(catalogue, profiles), *_requires_edges(catalogue, capabilities)]
    shown = {node.id for node in nodes}
    kept = {edge for edge in edges if edge.source in shown and edge.target in shown}
    revision = f"Revision {catalogue.revision}."
    return Picture(title, f"{title}. {revision}", tuple(nodes), tuple(sorted(kept)))


def _columns(catalogue: Catalogue, names: Iterable[str]) -> dict[str, int]:
    """One column to the right of every capability that requires it."""
    graph = {name: _required(catalogue, name) for name in names}
    order, _ = dependencies_first(graph)
    columns = dict.fromkeys(order, 1)
    for name in reversed(order):
        for required in graph[name]:
            if required in columns:
                columns[required] = max(columns[required], columns[name] + 1)
    # What everybody has is reached by no arrow, and would stand in the way of those that pass.
    last = max(columns.values(), default=1)
    alone = {n for n in order if catalogue.capabilities[n].always_included and not graph[n]}
    return {name: last if name in alone else column for name, column in columns.items()}


def _required(catalogue: Catalogue, name: str) -> list[str]:
    return [catalogue.names[ref.name] for ref in catalogue.capabilities[name].requires]


def _profile_node(catalogue: Catalogue, name: str, *, compact: bool) -> Node:
    composition = catalogue.compositions[name]
    grant = catalogue.grants[name]
    layer, _ = layer_of(catalogue, name, {})
    lines = [NodeLine(f"+ {entry.text}", "adds") for entry in layer.allowed]
    lines += [NodeLine(f"- {entry.text}", "denies", denied=True) for entry in layer.disallowed]
    count = f"{len(grant.events)} events"
    limited = [f"max effect: {grant.max_effect}"] if grant.max_effect else []
    tools = f", {len(grant.claude_tools)} model tools" if grant.claude_tools else ""
    return Node(
        id=f"profile:{name}",
        kind="profile",
        column=0,
        title=name,
        description=composition.description,
        marks=(count + tools, *limited, *(f"waits for review: {n}" for n in grant.pending_review)),
        lines=() if compact else _cut(lines),
    )


def _capability_node(
    catalogue: Catalogue, name: str, subjects: tuple[str, ...], column: int, *, compact: bool
) -> Node:
    definition = catalogue.capabilities[name]
    waiting = [n for n in subjects if name in catalogue.grants[n].pending_review]
    marks = [
        *(["everybody has it"] if definition.always_included else []),
        *([definition.status.replace("_", " ")] if definition.status != "available" else []),
        *([f"review pending: {', '.join(waiting)}"] if waiting else []),
        *(["needs a review"] if definition.security_review_required and not waiting else []),
        *(["not in tool lists"] if not definition.mcp_tools else []),
    ]
    return Node(
        id=f"capability:{name}",
        kind="capability",
        column=column,
        title=name,
        description=definition.description,
        marks=tuple(marks),
        lines=() if compact else _cut(_capability_lines(catalogue, definition, subjects)),
    )


def _capability_lines(
    catalogue: Catalogue, definition: Capability, subjects: tuple[str, ...]
) -> list[NodeLine]:
    holders = [n for n in subjects if definition.id in catalogue.grants[n].capabilities]
    universe = catalogue.universe
    lines = []
    for event in universe.names_in(catalogue.own_events[definition.id]):
        without = [n for n in holders if event not in catalogue.grants[n].events]
        lines.append(_line(event, "event", without, len(subjects)))
    lines += [
        NodeLine(str(placed.pattern), "absent", note="no handler yet")
        for placed in definition.event_patterns or ()
        if not universe.granted_by(placed.pattern)
    ]
    for ref in sorted(definition.claude_tools, key=lambda ref: ref.name):
        without = [n for n in holders if ref.name not in catalogue.grants[n].claude_tools]
        lines.append(_line(ref.name, "tool", without, len(subjects)))
    return lines


def _line(text: str, kind: LineKind, without: list[str], shown: int) -> NodeLine:
    note = f"not for {', '.join(without)}" if without and shown > 1 else ""
    return NodeLine(text, kind, denied=bool(without), note=note)


def _cut(lines: list[NodeLine]) -> tuple[NodeLine, ...]:
    """Keep a node readable; what is denied is never among the lines that are cut first."""
    if len(lines) <= MAX_LINES:
        return tuple(lines)
    first = sorted(range(len(lines)), key=lambda at: (not lines[at].denied, at))[: MAX_LINES - 1]
    kept = [lines[at] for at in sorted(first)]
    return (*kept, NodeLine(f"+{len(lines) - len(kept)} more", "more"))


def _profile_edges(catalogue: Catalogue, profiles: Iterable[str]) -> Iterable[Edge]:
    for name in profiles:
        composition = catalogue.compositions[name]
        pending = catalogue.grants[name].pending_review
        parents = [*composition.extends, *(mixin.ref for mixin in composition.mixins)]
        for ref in parents:
            yield Edge(f"profile:{name}", f"profile:{ref.name}", "extends")
        for flag in (flag for part in composition.parts for flag in part.flags if flag.on):
            target = catalogue.names[flag.capability]
            kind: EdgeKind = "pending" if target in pending else "grants"
            yield Edge(f"profile:{name}", f"capability:{target}", kind)


def _requires_edges(catalogue: Catalogue, names: Iterable[str]) -> Iterable[Edge]:
    for name in names:
        for required in _required(catalogue, name):
            yield Edge(f"capability:{name}", f"capability:{required}", "requires")
