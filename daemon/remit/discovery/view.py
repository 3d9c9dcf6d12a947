"""A view: the descriptors that one grant allows, and what is counted among them alone."""

from collections import Counter, OrderedDict
from typing import Any

from remit.discovery.arrays import Flags, np
from remit.discovery.graph import EdgeType
from remit.discovery.index import Index
from remit.model.descriptor import Descriptor
from remit.model.grant import Grant

_PASSES = 16
"""How long a chain of skills that need skills may be; what is longer stays hidden."""


class View:
    """What one holder may be shown of an index."""

    def __init__(self, index: Index, allowed: Flags) -> None:
        self.index = index
        self.allowed = allowed
        self.total = int(np.count_nonzero(allowed))
        self.words = index.lexical.lens(allowed)
        self.rows = tuple(int(row) for row in np.flatnonzero(allowed))
        self.answers: OrderedDict[Any, Any] = OrderedDict()
        """What was asked of this view before, for whoever asks; it goes with the view."""
        self.full_dump: int | None = None
        self._groups = Counter(index.graph.groups[row] for row in self.rows)

    def group_size(self, group: str) -> int:
        """How many descriptors of this view have this kind and category."""
        return self._groups[group]

    def kinds(self) -> dict[str, int]:
        """How many there are of each kind."""
        return dict(sorted(Counter(self.index.descriptors[row].kind for row in self.rows).items()))

    def categories(self) -> dict[str, int]:
        """How many there are in each category."""
        found = Counter(self.index.descriptors[row].category or "other" for row in self.rows)
        return dict(sorted(found.items()))

    def edge_counts(self) -> dict[EdgeType, int | None]:
        """How many edges of each type lie in this view; None: too many pairs to look at."""
        return self.index.graph.counts(self.rows)

    def named(self, text: str) -> list[int]:
        """The rows of this view that go by a name; only one if it is an id."""
        rows = [row for row in self.index.named(text) if self.sees(row)]
        return [row for row in rows if self.index.descriptors[row].id == text] or rows

    def sees(self, row: int) -> bool:
        """Tell whether a row is part of this view."""
        return bool(self.allowed[row])


def view_of(index: Index, grant: Grant, *, everything: bool = False) -> View:
    """The part of an index that a grant allows; all of it for those who may see everything."""
    if everything:
        return View(index, np.ones(len(index), np.bool_))
    held = frozenset(grant.capabilities)
    allowed = np.fromiter(
        (_is_held(descriptor, grant, held) for descriptor in index.descriptors),
        np.bool_,
        len(index),
    )
    _hide_without_tools(index, allowed)
    return View(index, allowed)


def _is_held(descriptor: Descriptor, grant: Grant, held: frozenset[str]) -> bool:
    if descriptor.event and descriptor.event not in grant.exposed:
        return False
    return not descriptor.capabilities or not held.isdisjoint(descriptor.capabilities)


def _hide_without_tools(index: Index, allowed: Flags) -> None:
    """Hide what needs a tool that the holder may not use: useless, and it would name the tool."""
    depends = index.graph.depends
    for _ in range(_PASSES):
        hidden = [
            row
            for row, needed in depends.items()
            if allowed[row] and not allowed[list(needed)].all()
        ]
        if not hidden:
            return
        allowed[hidden] = False
    allowed[list(depends)] = False
