"""Making a text fit a number of tokens: cut where a reader would, and share room fairly."""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from remit.text.counting import TokenCounter

_STRETCH = 400
"""Characters that are counted at once, so that a line of a megabyte is not counted to its end."""
_BORDERS = (
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?;])\s|(?<=[。！？；])"),  # noqa: RUF001 - the stops of other scripts
    re.compile(r"\s"),
)
"""Paragraph, line, sentence, word: the best one in the second half of a text is taken."""
_TRIES = 48
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)\Z")


def fitted(text: str, room: int, counter: TokenCounter, mark: str = "") -> str | None:
    """The text if it fits, else its beginning with `mark` behind it; None: not even a word fits."""
    if room <= 0:
        return None if text else text
    start = _beginning(text, room, counter)
    if len(start) == len(text) and counter.count(text) <= room:
        return text
    for _ in range(_TRIES):
        start = start[:-1] if len(start) == len(text) else start
        short = _at_border(start)
        if not short:
            return None
        short = closed(short) + mark
        tokens = counter.count(short)
        if tokens <= room:
            return short
        start = start[: int(len(start) * min(0.97, max(0.5, room / tokens)))]
    return None


def size(text: str, room: int, counter: TokenCounter) -> int:
    """The tokens of a text, or `room + 1` when they are more than `room`."""
    if len(_beginning(text, room, counter)) < len(text):
        return room + 1
    return min(counter.count(text), room + 1)


def shortened_to(text: str, characters: int) -> str:
    """The text of one line, cut at a sentence or a word when it is longer than this."""
    if len(text) <= characters:
        return text
    short = _at_border(text[: characters - 1]) or text[: characters - 1]
    return short if short[-1] in ".!?。！？" else f"{short}…"  # noqa: RUF001


def shares(needs: Sequence[int], room: int) -> list[int]:
    """What each gets: equal parts, and what one does not need goes to those that need more."""
    given = [0] * len(needs)
    left = max(room, 0)
    order = sorted(range(len(needs)), key=lambda at: (needs[at], at))
    for place, at in enumerate(order):
        given[at] = min(needs[at], left // (len(needs) - place))
        left -= given[at]
    return given


def closed(text: str) -> str:
    """The text with the code block closed that it leaves open, so that nothing falls into it."""
    if "```" not in text and "~~~" not in text:
        return text
    opened = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not found:
            continue
        ticks, rest = found.groups()
        if not opened:
            opened = ticks
        elif ticks.startswith(opened) and not rest.strip():
            opened = ""
    return f"{text}\n{opened}" if opened else text


def _beginning(text: str, room: int, counter: TokenCounter) -> str:
    """Rather more of the text than fits; all of it if all of it may fit."""
    used = end = 0
    most = room + room // 8 + 16  # parts can count more than the whole
    for start, stop in _stretches(text):
        used += counter.count(text[start:stop])
        if used > most:
            return text[:stop] if not end else text[:end]
        end = stop
    return text


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Places where lines, or parts of long ones, begin and end; a line break belongs to none."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start, start + _STRETCH)
        if stop < 0:
            stop = min(start + _STRETCH, len(text))
        yield start, stop
        start = stop + 1 if stop < len(text) and text[stop] == "\n" else stop


def _at_border(text: str) -> str:
    """The text up to its last good border; as it is when there is none."""
    half = len(text) // 2
    for border in _BORDERS:
        places = [found.start() for found in border.finditer(text, half)]
        if places and text[: places[-1]].strip():
            return _without_last_heading(text[: places[-1]].rstrip())
    return text.rstrip().rstrip("\u200d")


def _without_last_heading(text: str) -> str:
    """The text without headings that nothing follows."""
    while True:
        before, _break, last = text.rpartition("\n")
        if not before or not last.startswith("#"):
            return text
        text = before.rstrip()


# Putting several texts into one room, so that none takes the place of the others.


class Cuttable(msgspec.Struct, frozen=True):
    """A text that wants room; `cut` makes it fit a number of tokens, or gives None."""

    id: str
    text: str
    cut: Callable[[int], str | None]


class Packed(msgspec.Struct, frozen=True):
    """What became of the entries: one text, never over its room."""

    text: str
    tokens: int
    ids: tuple[str, ...]
    left_out: tuple[str, ...]


def packed(
    head: str, joint: str, entries: Sequence[Cuttable], room: int, counter: TokenCounter
) -> Packed:
    """The entries under their heading, sharing the room; those without a place are named."""
    left = list(entries)
    text = ""
    while left:
        placed = _placed(head, joint, left, room, counter)
        parts = [head, *placed] if head else placed
        text = joint.join(part for part in parts if part is not None)
        if None not in placed and counter.count(text) <= room:
            break
        # The worst of those without a place goes, and its room is shared anew.
        worst = max((at for at, one in enumerate(placed) if one is None), default=len(left) - 1)
        del left[worst]
    text = text if left else ""
    ids = tuple(entry.id for entry in left)
    left_out = tuple(entry.id for entry in entries if entry.id not in ids)
    return Packed(text, counter.count(text), ids, left_out)


def _placed(
    head: str, joint: str, entries: Sequence[Cuttable], room: int, counter: TokenCounter
) -> list[str | None]:
    """The text of each within its fair share of the room; None where even a part has no place."""
    room = max(room - counter.count(head), 0)
    gap = counter.count(joint)
    needs = [gap + size(entry.text, room, counter) for entry in entries]
    given = shares(needs, room)
    return [
        entry.text if need <= share else entry.cut(share - gap)
        for entry, need, share in zip(entries, needs, given, strict=True)
    ]
