"""A picture as SVG: one file, no script, no font and no address from outside.

Cards stand in columns. Nothing overlaps, by construction.
"""

import re
import unicodedata
from html import escape
from itertools import groupby

import msgspec

from remit.policy.graph.graph import Edge, Node, NodeLine, Picture

CHAR = 7.25
"""Width of a character of the monospace text, rounded up: fonts differ between machines."""
LINE = 17
PAD = 12
GAP = 18
COLUMN_GAP = 96
TOP = 92
LEFT = 72
MIN_WIDTH = 150
MAX_CHARS = 46
TALL = 900
_UNPRINTABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BEND = COLUMN_GAP * 0.55
_SHAPES = """
text { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; }
.head { font-size: 16px; font-weight: 600; }
.title { font-weight: 700; }
.absent, .more { font-style: italic; }
.denied { text-decoration: line-through; }
.card { stroke-width: 1; }
.card.waiting { stroke-dasharray: 5 3; }
.edge { fill: none; stroke-width: 1.4; }
.edge.pending { stroke-dasharray: 5 4; }
.edge.requires { stroke-dasharray: 2 3; }
"""
# No CSS variables: several viewers of SVG files do not know them and would draw all in black.
_COLOURS = (
    # selector, property, light, dark
    (".back", "fill", "#ffffff", "#12161c"),
    ("text", "fill", "#1c2430", "#e6ebf2"),
    (".about, .absent, .more, .key", "fill", "#5b6675", "#a3aebd"),
    (".mark", "fill", "#3b5a3f", "#9fceaa"),
    (".waits", "fill", "#8a5a00", "#f0b95a"),
    (".adds", "fill", "#1f5fa8", "#74aef2"),
    (".tool", "fill", "#6a3fa0", "#c9a8ff"),
    (".denied", "fill", "#b3141f", "#ff8a8a"),
    (".card", "fill", "#f5f7fa", "#1d242e"),
    (".card", "stroke", "#b9c2cf", "#45505f"),
    (".card.profile", "fill", "#e4eefc", "#17304f"),
    (".card.profile", "stroke", "#6d94cc", "#4d7ab8"),
    (".card.waiting", "stroke", "#8a5a00", "#f0b95a"),
    (".edge", "stroke", "#6d7b8d", "#8593a6"),
    (".edge.grants", "stroke", "#2f6db5", "#74aef2"),
    (".edge.pending", "stroke", "#8a5a00", "#f0b95a"),
    (".edge.requires", "stroke", "#3c8057", "#74c295"),
    (".tip", "fill", "#6d7b8d", "#8593a6"),
    (".tip.grants", "fill", "#2f6db5", "#74aef2"),
    (".tip.pending", "fill", "#8a5a00", "#f0b95a"),
    (".tip.requires", "fill", "#3c8057", "#74c295"),
)
_LEGEND = (
    ("grants", "switches on"),
    ("pending", "waits for review"),
    ("requires", "requires"),
    ("extends", "builds on"),
)


class Row(msgspec.Struct, frozen=True):
    """A line of text at its height inside the node."""

    text: str
    style: str
    y: float
    denied: bool = False


class Box(msgspec.Struct, frozen=True):
    """A node with its place."""

    node: Node
    x: float
    y: float
    width: float
    height: float
    rows: tuple[Row, ...]


class Layout(msgspec.Struct, frozen=True):
    """All boxes and the size of the whole."""

    boxes: dict[str, Box]
    width: float
    height: float


def to_svg(picture: Picture) -> str:
    """Draw a picture. The same picture always gives the same text."""
    layout = lay_out(picture)
    width, height = _number(layout.width), _number(layout.height)
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" class="remit-graph" role="img"'
        f' aria-labelledby="remit-graph-title remit-graph-desc" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}">',
        f'<title id="remit-graph-title">{_text(picture.title)}</title>',
        f'<desc id="remit-graph-desc">{_text(picture.description)}</desc>',
        f"<style>\n{_style()}\n</style>",
        '<rect class="back" width="100%" height="100%"/>',
        f'<text class="head" x="{PAD * 2}" y="32">{_text(picture.title)}</text>',
        *_legend(),
        *(_edge(edge, layout) for edge in picture.edges),
        *(line for box in layout.boxes.values() for line in _node(box)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _style() -> str:
    """The style sheet; every rule is held inside the picture, which may stand in a page."""
    light = [f"{selector} {{ {key}: {value}; }}" for selector, key, value, _ in _COLOURS]
    dark = [f"{selector} {{ {key}: {value}; }}" for selector, key, _, value in _COLOURS]
    shapes = _SHAPES.strip().splitlines()
    rules = [*map(_scoped, [*shapes, *light]), "@media (prefers-color-scheme: dark) {"]
    return "\n".join([*rules, *map(_scoped, dark), "}"])


def _scoped(rule: str) -> str:
    selectors, body = rule.split(" {", 1)
    return ", ".join(f".remit-graph {one}" for one in selectors.split(", ")) + " {" + body


def _text(text: str) -> str:
    """Text that stays text, whatever a description holds."""
    return escape(_UNPRINTABLE.sub("\ufffd", text), quote=True)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _legend() -> list[str]:
    lines = []
    x = PAD * 2
    for kind, label in _LEGEND:
        lines.append(f'<path class="edge {kind}" d="M{x} 56 H{x + 26}"/>')
        lines.append(_tip(x + 30, 56, kind, towards=1))
        lines.append(f'<text class="key" x="{x + 36}" y="60">{label}</text>')
        x += 36 + 8 * len(label) + 22
    lines.append(f'<text class="tool" x="{x}" y="60">model tool</text>')
    lines.append(f'<text class="denied" x="{x + 100}" y="60">denied</text>')
    lines.append(f'<text class="absent" x="{x + 164}" y="60">no handler yet</text>')
    return lines


def _edge(edge: Edge, layout: Layout) -> str:
    source, target = layout.boxes[edge.source], layout.boxes[edge.target]
    # Two kinds of arrows that meet at one node end apart, so that neither hides the other.
    y1, y2 = source.y + 18, target.y + (30 if edge.kind == "requires" else 18)
    if source.x >= target.x:
        # Between nodes of one column the arrow runs through the margin on their left.
        bulge = min(LEFT - 12, 18 + abs(y2 - y1) * 0.05)
        x = target.x
        path = f"M{_number(source.x)} {_number(y1 - 6)} C{_number(x - bulge)} {_number(y1 - 6)}"
        path += f" {_number(x - bulge)} {_number(y2 + 6)} {_number(x - 5)} {_number(y2 + 6)}"
        y2 += 6
    else:
        x = target.x
        start = source.x + source.width
        path = f"M{_number(start)} {_number(y1)} C{_number(start + _BEND)} {_number(y1)}"
        path += f" {_number(x - _BEND)} {_number(y2)} {_number(x - 5)} {_number(y2)}"
    return f'<path class="edge {edge.kind}" d="{path}"/>{_tip(x, y2, edge.kind, towards=1)}'


def _tip(x: float, y: float, kind: str, *, towards: int) -> str:
    back = _number(x - 7 * towards)
    points = f"{_number(x)},{_number(y)} {back},{_number(y - 4)} {back},{_number(y + 4)}"
    return f'<polygon class="tip {kind}" points="{points}"/>'


def _node(box: Box) -> list[str]:
    waits = any(row.style == "waits" for row in box.rows)
    classes = f"card {box.node.kind}{' waiting' if waits else ''}"
    x, y = _number(box.x), _number(box.y)
    size = f'width="{_number(box.width)}" height="{_number(box.height)}"'
    lines = [f'<g><rect class="{classes}" x="{x}" y="{y}" {size} rx="6"/>']
    for row in box.rows:
        style = f"{row.style} denied" if row.denied else row.style
        place = f'x="{_number(box.x + PAD)}" y="{_number(box.y + row.y)}"'
        lines.append(f'<text class="{style}" {place}>{_text(row.text)}</text>')
    return [*lines, "</g>"]


def lay_out(picture: Picture) -> Layout:
    """Place the nodes in columns, each as wide as its widest node."""
    boxes: dict[str, Box] = {}
    x = float(LEFT)
    tall = max(TALL, _profiles_height(picture))
    for _, group in groupby(picture.nodes, key=lambda node: node.column):
        for nodes in _wrapped(_ordered(list(group), picture, boxes), tall):
            width = max(_width(node) for node in nodes)
            y = float(TOP)
            for node in nodes:
                rows, height = _rows(node)
                boxes[node.id] = Box(node, x, y, width, height, rows)
                y += height + GAP
            x += width + COLUMN_GAP
    bottom = max((box.y + box.height for box in boxes.values()), default=TOP)
    return Layout(boxes, max(x - COLUMN_GAP, 720) + PAD * 2, bottom + PAD * 2)


def _profiles_height(picture: Picture) -> float:
    return sum(_rows(node)[1] + GAP for node in picture.nodes if node.column == 0)


def _ordered(nodes: list[Node], picture: Picture, placed: dict[str, Box]) -> list[Node]:
    """Near to what points at them, so that arrows cross less; unreached ones come last."""
    if nodes[0].kind == "profile":
        return nodes
    heights: dict[str, list[float]] = {}
    for edge in picture.edges:
        if edge.source in placed:
            heights.setdefault(edge.target, []).append(placed[edge.source].y)

    def key(node: Node) -> tuple[float, str]:
        found = heights.get(node.id)
        return (sum(found) / len(found) if found else float("inf"), node.id)

    return sorted(nodes, key=key)


def _wrapped(nodes: list[Node], tall: float) -> list[list[Node]]:
    """Split a column that would grow too tall."""
    columns: list[list[Node]] = [[]]
    y = 0.0
    for node in nodes:
        height = _rows(node)[1] + GAP
        if columns[-1] and y + height > tall:
            columns.append([])
            y = 0.0
        columns[-1].append(node)
        y += height
    return columns


def _rows(node: Node) -> tuple[tuple[Row, ...], float]:
    y = PAD + 10.0
    rows = [Row(shortened(node.title), "title", y)]
    for text, style in [
        (node.description, "about"),
        *((mark, _mark_style(mark)) for mark in node.marks),
    ]:
        if text:
            y += LINE
            rows.append(Row(shortened(text), style, y))
    if node.lines:
        y += 6
    for line in node.lines:
        y += LINE
        rows.append(Row(shortened(_line_text(line)), line.kind, y, line.denied))
    return tuple(rows), y + PAD


def _mark_style(mark: str) -> str:
    return "waits" if "review" in mark else "mark"


def _line_text(line: NodeLine) -> str:
    text = f"{line.text}  [model tool]" if line.kind == "tool" else line.text
    return f"{text}  ({line.note})" if line.note else text


def _width(node: Node) -> float:
    widest = max(text_width(row.text) for row in _rows(node)[0])
    return max(MIN_WIDTH, widest + 2 * PAD)


def shortened(text: str, limit: int = MAX_CHARS) -> str:
    """The text in one line, cut at the end when it is too long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def text_width(text: str) -> float:
    """An upper estimate; wide characters count twice."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return (len(text) + wide) * CHAR
