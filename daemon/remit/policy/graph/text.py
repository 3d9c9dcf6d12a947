"""A picture for the tools that draw for themselves: Graphviz DOT and Mermaid."""

import re
from collections.abc import Callable
from html import escape

from remit.policy.graph.graph import Edge, Node, NodeLine, Picture

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
