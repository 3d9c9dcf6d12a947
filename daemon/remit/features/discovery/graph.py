"""What belongs together: four kinds of edges between descriptors, and what they do to a ranking.

Two descriptors can be joined by several kinds at once, and each keeps its weight. Shared tags and
categories are compared when a ranking needs them and only among its best: drawn beforehand they
would be millions of edges, and would count descriptors that the caller may not see.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from remit.model.descriptor import Descriptor

EdgeType = Literal["DEPENDS_ON", "COMPOSED_WITH", "TAGGED_WITH", "SAME_CATEGORY"]

_DEPENDS, _COMPOSED, _TAG, _CATEGORY = 1.0, 0.5, 0.3, 0.1
_SHARED_TAGS = 2
_GROUP = range(2, 9)
BOOST = 0.15
_COUNTED_PAIRS = 2_000_000
_LEARNED_FROM = 2.0
"""Uses together, decayed, before they count at all: once is an accident."""


class Graph:
    """The edges that are written down or learned; rows are places in the index."""

    def __init__(
        self, descriptors: Sequence[Descriptor], learned: Mapping[tuple[str, str], float]
    ) -> None:
        self._rows = _by_name(descriptors)
        self._descriptors = descriptors
        self.groups = [
            f"{descriptor.kind}:{descriptor.category}" if descriptor.category else ""
            for descriptor in descriptors
        ]
        self.missing: dict[int, tuple[str, ...]] = {}
        """By row: required tools that nothing here goes by."""
        self.depends: dict[int, tuple[int, ...]] = {}
        self.composed: dict[int, dict[int, float]] = {}
        for row, descriptor in enumerate(descriptors):
            self._join(row, descriptor)
        ids = {descriptor.id: row for row, descriptor in enumerate(descriptors)}
        for (one, other), weight in learned.items():
            if one in ids and other in ids:
                self._compose(ids[one], ids[other], weight)

    def _join(self, row: int, descriptor: Descriptor) -> None:
        found = {name: self._find(name, row) for name in descriptor.required_tools}
        rows = dict.fromkeys(at for at in found.values() if at is not None)
        if rows:
            self.depends[row] = tuple(rows)
        missing = tuple(name for name, at in found.items() if at is None)
        if missing:
            self.missing[row] = missing
        for name in descriptor.composed_with:
            other = self._find(name, row)
            if other is not None:
                self._compose(row, other, _COMPOSED)

    def _find(self, name: str, row: int) -> int | None:
        """Who goes by a name, other than the row that says it."""
        return next((at for at in self._rows.get(name.casefold(), ()) if at != row), None)

    def _compose(self, one: int, other: int, weight: float) -> None:
        if one == other:
            return
        for here, there in ((one, other), (other, one)):
            edges = self.composed.setdefault(here, {})
            edges[there] = max(edges.get(there, 0.0), weight)

    def edges(
        self, one: int, other: int, group_size: Callable[[str], int]
    ) -> dict[EdgeType, float]:
        """Every kind of edge between two rows, with its weight."""
        found: dict[EdgeType, float] = {}
        if other in self.depends.get(one, ()) or one in self.depends.get(other, ()):
            found["DEPENDS_ON"] = _DEPENDS
        composed = self.composed.get(one, {}).get(other)
        if composed:
            found["COMPOSED_WITH"] = composed
        shared = len(self._tags(one) & self._tags(other))
        if shared >= _SHARED_TAGS:
            found["TAGGED_WITH"] = _TAG * shared
        group = self.groups[one]
        if group and group == self.groups[other] and group_size(group) in _GROUP:
            found["SAME_CATEGORY"] = _CATEGORY
        return found

    def _tags(self, row: int) -> frozenset[str]:
        return frozenset(self._descriptors[row].tags)

    def boosts(
        self, rows: Sequence[int], group_size: Callable[[str], int], most: float = BOOST
    ) -> dict[int, float]:
        """What each row gains from its neighbours among `rows`; at most `most`."""
        joined = dict.fromkeys(rows, 0.0)
        for one, other in combinations(rows, 2):
            weight = sum(self.edges(one, other, group_size).values())
            joined[one] += weight
            joined[other] += weight
        return {row: most * min(1.0, weight) for row, weight in joined.items()}

    def neighbours(self, row: int) -> list[tuple[int, float]]:
        """What comes along with a row: what it depends on, then what it is used with."""
        needed = [(other, _DEPENDS) for other in self.depends.get(row, ())]
        used = sorted(self.composed.get(row, {}).items(), key=lambda edge: (-edge[1], edge[0]))
        return needed + [edge for edge in used if edge[0] not in self.depends.get(row, ())]

    def counts(self, rows: Sequence[int]) -> dict[EdgeType, int | None]:
        """How many edges of each type join these rows."""
        seen = frozenset(rows)
        groups = Counter(self.groups[row] for row in rows if self.groups[row])
        return {
            "DEPENDS_ON": sum(len(seen.intersection(self.depends.get(row, ()))) for row in rows),
            "COMPOSED_WITH": sum(len(seen & self.composed.get(row, {}).keys()) for row in rows)
            // 2,
            "TAGGED_WITH": self._tagged(rows),
            "SAME_CATEGORY": sum(
                size * (size - 1) // 2 for size in groups.values() if size in _GROUP
            ),
        }

    def _tagged(self, rows: Sequence[int]) -> int | None:
        holders: dict[str, list[int]] = {}
        for row in rows:
            for tag in self._tags(row):
                holders.setdefault(tag, []).append(row)
        if sum(len(found) ** 2 for found in holders.values()) > _COUNTED_PAIRS:
            return None
        shared = Counter(pair for found in holders.values() for pair in combinations(found, 2))
        return sum(count >= _SHARED_TAGS for count in shared.values())


def composed_edges(together: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Weights up to 0.5 for ids that were used together more than once."""
    return {
        pair: _COMPOSED * (1 - math.exp(-uses / 4))
        for pair, uses in together.items()
        if uses >= _LEARNED_FROM
    }


def _by_name(descriptors: Sequence[Descriptor]) -> dict[str, list[int]]:
    """Rows by the names that are asked for, the best first: ids, events, tools, then others."""
    asked = {
        name.casefold()
        for descriptor in descriptors
        for name in (*descriptor.required_tools, *descriptor.composed_with)
    }
    found: dict[str, list[tuple[int, int]]] = {}
    for row, descriptor in enumerate(descriptors) if asked else ():
        last = 2 if descriptor.kind == "tool" else 3
        for order, name in ((0, descriptor.id), (1, descriptor.event), (last, descriptor.name)):
            if name and (folded := name.casefold()) in asked:
                found.setdefault(folded, []).append((order, row))
    return {name: [row for _order, row in sorted(rows)] for name, rows in found.items()}
