"""A view: the descriptors that one grant allows, and what is counted among them alone."""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from remit.features.discovery.embedding import Flags, np
from remit.features.discovery.graph import EdgeType
from remit.features.discovery.index import Index
from remit.features.discovery.lexical import Lens
from remit.features.discovery.texts import label_of
from remit.model.descriptor import Descriptor
from remit.model.grant import Grant

DESCRIBE = "discovery:describe"
"""The event that tells everything about one thing."""
_AS_INDEXED: Mapping[str, str] = MappingProxyType({})
_PASSES = 16
"""How long a chain of skills that need skills may be; what is longer stays hidden."""


class View:
    """What one holder may be shown of an index."""

    def __init__(
        self,
        index: Index,
        allowed: Flags,
        *,
        names: Mapping[str, str] = _AS_INDEXED,
        way: str = DESCRIBE,
    ) -> None:
        """Make a view.

        Args:
            index: what there is.
            allowed: which rows of it are shown.
            names: what the holder calls tools, by event, where the index has another name.
            way: how it reads the whole of what is cut short; the id stands behind it.
        """
        self.index = index
        self.way = way
        self._names = names
        self.allowed = allowed
        self.total = int(np.count_nonzero(allowed))
        self.words = Lens(index.lexical, allowed)
        self.rows = tuple(int(row) for row in np.flatnonzero(allowed))
        self.answers: OrderedDict[Any, Any] = OrderedDict()
        """What was asked of this view before, for whoever asks; it goes with the view."""
        self.full_dump: int | None = None
        self._groups = Counter(index.graph.groups[row] for row in self.rows)

    def descriptor(self, row: int) -> Descriptor:
        """What a row is, by the name that the holder knows."""
        found = self.index.descriptors[row]
        name = self._names.get(found.event)
        return found if name is None else msgspec.structs.replace(found, name=name)

    def is_renamed(self, row: int) -> bool:
        """Tell whether the holder knows a row by another name than the index."""
        return self.index.descriptors[row].event in self._names

    def group_size(self, group: str) -> int:
        """How many descriptors of this view have this kind and category."""
        return self._groups[group]

    def kinds(self) -> dict[str, int]:
        """How many there are of each kind."""
        return dict(sorted(Counter(self.index.descriptors[row].kind for row in self.rows).items()))

    def categories(self) -> dict[str, int]:
        """How many there are in each group, by the labels of the map."""
        return {label: len(rows) for label, rows in sorted(self.by_category().items())}

    def by_category(self) -> dict[str, list[int]]:
        """The rows of each group. Labels in other letters are the same; the first one is shown."""
        labels: dict[str, str] = {}
        found: dict[str, list[int]] = {}
        for row in self.rows:
            label = label_of(self.index.descriptors[row])
            found.setdefault(labels.setdefault(label.casefold(), label), []).append(row)
        return found

    def edge_counts(self) -> dict[EdgeType, int | None]:
        """How many edges of each type lie in this view; None: too many pairs to look at."""
        return self.index.graph.counts(self.rows)

    def named(self, text: str) -> list[int]:
        """The rows of this view that go by a name; only one if it is an id."""
        rows = [row for row in self.index.named(text) if self.sees(row)]
        events = {event for event, name in self._names.items() if name == text}
        rows += [row for row in self.rows if self.index.descriptors[row].event in events]
        rows = list(dict.fromkeys(rows))
        return [row for row in rows if self.index.descriptors[row].id == text] or rows

    def sees(self, row: int) -> bool:
        """Tell whether a row is part of this view."""
        return bool(self.allowed[row])


def view_of(
    index: Index,
    grant: Grant,
    *,
    everything: bool = False,
    names: Mapping[str, str] = _AS_INDEXED,
    way: str = DESCRIBE,
) -> View:
    """The part of an index that a grant allows; all of it for those who may see everything."""
    if everything:
        return View(index, np.ones(len(index), np.bool_), names=names, way=way)
    held = frozenset(grant.capabilities)
    allowed = np.fromiter(
        (_is_held(descriptor, grant, held) for descriptor in index.descriptors),
        np.bool_,
        len(index),
    )
    _hide_without_tools(index, allowed)
    return View(index, allowed, names=names, way=way)


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
