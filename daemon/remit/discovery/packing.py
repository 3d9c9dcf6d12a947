"""Putting several texts into one room, so that none takes the place of the others."""

from collections.abc import Callable, Sequence

import msgspec

from remit.discovery.counting import TokenCounter
from remit.discovery.cutting import shares, size


class Entry(msgspec.Struct, frozen=True):
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
    head: str, joint: str, entries: Sequence[Entry], room: int, counter: TokenCounter
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
    head: str, joint: str, entries: Sequence[Entry], room: int, counter: TokenCounter
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
