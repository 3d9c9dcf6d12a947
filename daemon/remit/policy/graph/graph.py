"""A picture of profiles and capabilities as plain data, and as text in Graphviz DOT and Mermaid.

Profiles stand in the first column. A capability stands one column to the right of whatever requires
it, so arrows run from left to right.
"""

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Literal

import msgspec

from remit.model.capability import Capability
from remit.policy.capabilities import dependencies_first
from remit.policy.catalogue import Catalogue
from remit.policy.checks import layer_of

MAX_LINES = 14
MAX_NODES = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")
_DOT_EDGES = {
    "grants": "color=steelblue",
    "pending": 'color=darkorange, style=dashed, label="waits for review"',
    # Not a constraint: profiles stay in one column.
    "extends": 'color=gray40, label="builds on", constraint=false',
    "requires": "color=seagreen, style=dotted",
}
_MERMAID_EDGES = {
    "grants": "-->",
    "pending": '-. "waits for review" .->',
    "extends": '-- "builds on" -->',
    "requires": '-. "requires" .->',
}
_MERMAID_SPECIAL = re.compile(r"[^\w .,:+\-()\[\]/=…✕]")

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
        grant = catalogue.grant(profile)
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


def to_dot(picture: Picture) -> str:
    """Write a picture for Graphviz."""
    lines = [
        "digraph remit {",
        f"  label={_quoted(picture.title)}; labelloc=t; rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=monospace];',
    ]
    for node in picture.nodes:
        fill = "aliceblue" if node.kind == "profile" else "whitesmoke"
        lines.append(f"  {_quoted(node.id)} [fillcolor={fill}, label=<{_dot_label(node)}>];")
    for edge in picture.edges:
        ends = f"{_quoted(edge.source)} -> {_quoted(edge.target)}"
        lines.append(f"  {ends} [{_DOT_EDGES[edge.kind]}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    flat = _CONTROL.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{flat}"'


def _dot_label(node: Node) -> str:
    def html(text: str) -> str:
        return escape(_CONTROL.sub(" ", text), quote=True)

    def shown(line: NodeLine) -> str:
        text = html(_plain(line))
        if line.denied:
            return f'<FONT COLOR="red"><S>{text}</S></FONT>'
        return f'<FONT COLOR="purple">{text}</FONT>' if line.kind == "tool" else text

    rows = [f"<B>{html(node.title)}</B>"]
    rows += [f"<I>{html(text)}</I>" for text in (node.description, *node.marks) if text]
    rows += [shown(line) for line in node.lines]
    return "".join(f'{row}<BR ALIGN="LEFT"/>' for row in rows)


def _plain(line: NodeLine) -> str:
    text = f"{line.text} [model tool]" if line.kind == "tool" else line.text
    return f"{text} ({line.note})" if line.note else text


def to_mermaid(picture: Picture) -> str:
    """Write a picture for Mermaid."""
    numbers = {node.id: f"n{at}" for at, node in enumerate(picture.nodes)}
    lines = ["flowchart LR", f"  accTitle: {_mermaid(picture.title)}"]
    for node in picture.nodes:
        name = numbers[node.id]
        lines.append(f'  {name}["{_mermaid_label(node)}"]:::{node.kind}')
    lines += [_mermaid_edge(edge, numbers.__getitem__) for edge in picture.edges]
    lines += [
        "  classDef profile fill:#e4eefc,stroke:#6d94cc,color:#1c2430,text-align:left",
        "  classDef capability fill:#f5f7fa,stroke:#b9c2cf,color:#1c2430,text-align:left",
    ]
    return "\n".join(lines) + "\n"


def _mermaid_edge(edge: Edge, number: Callable[[str], str]) -> str:
    return f"  {number(edge.source)} {_MERMAID_EDGES[edge.kind]} {number(edge.target)}"


def _mermaid(text: str) -> str:
    """Everything that could mean something to Mermaid or to HTML, as a character code."""
    flat = _CONTROL.sub(" ", text)
    return _MERMAID_SPECIAL.sub(lambda match: f"#{ord(match.group())};", flat)


def _mermaid_label(node: Node) -> str:
    def shown(line: NodeLine) -> str:
        text = _mermaid(_plain(line))
        return f"✕ <s>{text}</s>" if line.denied else text

    rows = [f"<b>{_mermaid(node.title)}</b>"]
    rows += [f"<i>{_mermaid(text)}</i>" for text in (node.description, *node.marks) if text]
    return "<br/>".join([*rows, *(shown(line) for line in node.lines)])
