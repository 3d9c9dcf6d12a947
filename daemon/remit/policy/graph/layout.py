"""Where the cards of a picture stand and how large they are. Nothing overlaps, by construction."""

import unicodedata
from itertools import groupby

import msgspec

from remit.policy.graph.graph import Card, Line, Picture

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


class Row(msgspec.Struct, frozen=True):
    """A line of text at its height inside the card."""

    text: str
    style: str
    y: float
    denied: bool = False


class Box(msgspec.Struct, frozen=True):
    """A card with its place."""

    card: Card
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


def shortened(text: str, limit: int = MAX_CHARS) -> str:
    """The text in one line, cut at the end when it is too long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def text_width(text: str) -> float:
    """An upper estimate; wide characters count twice."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return (len(text) + wide) * CHAR


def lay_out(picture: Picture) -> Layout:
    """Place the cards in columns, each as wide as its widest card."""
    boxes: dict[str, Box] = {}
    x = float(LEFT)
    tall = max(TALL, _profiles_height(picture))
    for _, group in groupby(picture.cards, key=lambda card: card.column):
        for cards in _wrapped(_ordered(list(group), picture, boxes), tall):
            width = max(_width(card) for card in cards)
            y = float(TOP)
            for card in cards:
                rows, height = _rows(card)
                boxes[card.id] = Box(card, x, y, width, height, rows)
                y += height + GAP
            x += width + COLUMN_GAP
    bottom = max((box.y + box.height for box in boxes.values()), default=TOP)
    return Layout(boxes, max(x - COLUMN_GAP, 720) + PAD * 2, bottom + PAD * 2)


def _profiles_height(picture: Picture) -> float:
    return sum(_rows(card)[1] + GAP for card in picture.cards if card.column == 0)


def _ordered(cards: list[Card], picture: Picture, placed: dict[str, Box]) -> list[Card]:
    """Near to what points at them, so that arrows cross less; unreached ones come last."""
    if cards[0].kind == "profile":
        return cards
    heights: dict[str, list[float]] = {}
    for edge in picture.edges:
        if edge.source in placed:
            heights.setdefault(edge.target, []).append(placed[edge.source].y)

    def key(card: Card) -> tuple[float, str]:
        found = heights.get(card.id)
        return (sum(found) / len(found) if found else float("inf"), card.id)

    return sorted(cards, key=key)


def _wrapped(cards: list[Card], tall: float) -> list[list[Card]]:
    """Split a column that would grow too tall."""
    columns: list[list[Card]] = [[]]
    y = 0.0
    for card in cards:
        height = _rows(card)[1] + GAP
        if columns[-1] and y + height > tall:
            columns.append([])
            y = 0.0
        columns[-1].append(card)
        y += height
    return columns


def _rows(card: Card) -> tuple[tuple[Row, ...], float]:
    y = PAD + 10.0
    rows = [Row(shortened(card.title), "title", y)]
    for text, style in [
        (card.description, "about"),
        *((mark, _mark_style(mark)) for mark in card.marks),
    ]:
        if text:
            y += LINE
            rows.append(Row(shortened(text), style, y))
    if card.lines:
        y += 6
    for line in card.lines:
        y += LINE
        rows.append(Row(shortened(_line_text(line)), line.kind, y, line.denied))
    return tuple(rows), y + PAD


def _mark_style(mark: str) -> str:
    return "waits" if "review" in mark else "mark"


def _line_text(line: Line) -> str:
    text = f"{line.text}  [model tool]" if line.kind == "tool" else line.text
    return f"{text}  ({line.note})" if line.note else text


def _width(card: Card) -> float:
    widest = max(text_width(row.text) for row in _rows(card)[0])
    return max(MIN_WIDTH, widest + 2 * PAD)
