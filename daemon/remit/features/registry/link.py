"""The linker: from chosen tools to all that they need, and the skills that go with them.

INVARIANT: what is linked is closed under dependencies, without cycles, minimal (each hidden tool is
needed by one that is linked), a part of what was given, and the same for any order of the needs.
A tool with a dependency that is missing, unhealthy or part of a cycle is not linked at all.

Pure, and nearly linear in what can be reached.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from remit.features.registry.entry import QUARANTINED, Entry, HealthState

MOST_SKILLS = 32
"""Skills of one mission; more would fill the prompt that they are meant to keep short."""


class Gap(msgspec.Struct, frozen=True, order=True):
    """A tool that is needed and cannot be linked."""

    id: str
    health: str
    """Its state, or `missing`."""
    needed_by: str = ""
    """Which tool needs it; empty: it was asked for."""


class LinkedSkill(msgspec.Struct, frozen=True):
    """A skill of the mission, and what brought it."""

    id: str
    score: float
    tools: tuple[str, ...] = ()
    """The linked tools that it applies to."""
    tags: tuple[str, ...] = ()
    """The tags of the mission that it has."""
    variant_of: str = ""
    """The skill that it stands for with this model."""


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """What a mission is given, and what stands in its way."""

    visible: tuple[str, ...] = ()
    """The tools that were asked for."""
    hidden: tuple[str, ...] = ()
    """What those need besides."""
    order: tuple[str, ...] = ()
    """All of them, dependencies first."""
    retry: tuple[str, ...] = ()
    """Those of them that are flaky."""
    skills: tuple[LinkedSkill, ...] = ()
    more_skills: tuple[str, ...] = ()
    """Skills that would go with them, beyond `MOST_SKILLS`."""
    conflicts: tuple[tuple[str, str], ...] = ()
    """Pairs of linked skills that say they contradict each other."""
    missing: tuple[Gap, ...] = ()
    unhealthy: tuple[Gap, ...] = ()
    cycles: tuple[tuple[str, ...], ...] = ()
    """Each begins with its smallest id; the last one needs the first."""


def link(  # noqa: PLR0913 - one for each thing that a link depends on
    needs: Iterable[str],
    entries: Mapping[str, Entry],
    *,
    skills: Iterable[Entry] = (),
    tags: Sequence[str] = (),
    model: str = "",
    health: Callable[[str], HealthState] = lambda _id: "unverified",
    score: Callable[[str], float | None] = lambda _id: 0.5,
) -> Linked:
    """Link tools with their dependencies and skills.

    Args:
        needs: the ids of the tools that are asked for.
        entries: every entry that may be linked, by id.
        skills: those that may be given.
        tags: those of the mission, folded.
        model: who works on it.
        health: how an entry is at this moment.
        score: how good a skill is in this context; None for one that is not to be given.
    """
    wanted = sorted(set(needs))
    walk = _Walk(entries, health)
    walk.run(wanted)
    visible = [id_ for id_ in wanted if id_ in walk.whole]
    kept = _closure(visible, entries)
    order = tuple(id_ for id_ in walk.order if id_ in kept)
    shown = frozenset(visible)
    given = {one.id: one for one in skills}
    found, more = _skills(order, entries, given, (tags, model, score))
    return Linked(
        visible=tuple(id_ for id_ in order if id_ in shown),
        hidden=tuple(id_ for id_ in order if id_ not in shown),
        order=order,
        retry=tuple(id_ for id_ in order if health(id_) == "flaky"),
        skills=found,
        more_skills=more,
        conflicts=_conflicts(found, given),
        missing=tuple(sorted(set(walk.missing))),
        unhealthy=tuple(sorted(set(walk.unhealthy))),
        cycles=tuple(sorted(walk.cycles)),
    )


class _Frame(NamedTuple):
    id: str
    dependencies: "Iterable[str]"


class _Walk:
    """Tarjan's walk over what can be reached, without recursion: chains may be long."""

    def __init__(self, entries: Mapping[str, Entry], health: Callable[[str], HealthState]) -> None:
        self._entries = entries
        self._health = health
        self.order: list[str] = []
        self.whole: set[str] = set()
        """Those of which everything that they need is there and well."""
        self.missing: list[Gap] = []
        self.unhealthy: list[Gap] = []
        self.cycles: list[tuple[str, ...]] = []
        self._number: dict[str, int] = {}
        self._lowest: dict[str, int] = {}
        self._open: list[str] = []
        self._is_open: set[str] = set()

    def run(self, wanted: Sequence[str]) -> None:
        for id_ in wanted:
            if self._is_there(id_, "") and id_ not in self._number:
                self._from(id_)

    def _is_there(self, id_: str, needed_by: str) -> bool:
        """Note what is not there, or not well; the walk goes on below what is not well."""
        if id_ not in self._entries:
            self.missing.append(Gap(id_, "missing", needed_by))
            return False
        state = self._health(id_)
        if state in QUARANTINED or state == "unavailable":
            self.unhealthy.append(Gap(id_, state, needed_by))
        return True

    def _from(self, root: str) -> None:
        stack = [self._entered(root)]
        while stack:
            id_, dependencies = stack[-1]
            for needed in dependencies:
                if not self._is_there(needed, id_):
                    continue
                if needed not in self._number:
                    stack.append(self._entered(needed))
                    break
                if needed in self._is_open:
                    self._lowest[id_] = min(self._lowest[id_], self._number[needed])
            else:
                stack.pop()
                if stack:
                    above = stack[-1].id
                    self._lowest[above] = min(self._lowest[above], self._lowest[id_])
                if self._lowest[id_] == self._number[id_]:
                    self._close(id_)

    def _entered(self, id_: str) -> _Frame:
        self._number[id_] = self._lowest[id_] = len(self._number)
        self._open.append(id_)
        self._is_open.add(id_)
        return _Frame(id_, iter(sorted(set(self._entries[id_].dependencies))))

    def _close(self, first: str) -> None:
        """All that can reach each other are a cycle; one alone is one if it needs itself."""
        group: list[str] = []
        while not group or group[-1] != first:
            group.append(self._open.pop())
        self._is_open.difference_update(group)
        if len(group) > 1 or first in self._entries[first].dependencies:
            self.cycles.append(_cycle(group, self._entries))
            return
        self.order.append(first)
        state = self._health(first)
        is_well = state not in QUARANTINED and state != "unavailable"
        if is_well and self.whole.issuperset(self._entries[first].dependencies):
            self.whole.add(first)


def _cycle(group: Sequence[str], entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """One cycle of a group in which everything can reach everything, the smallest id first."""
    inside = frozenset(group)
    path: dict[str, None] = {}
    at = min(group)
    while at not in path:
        path[at] = None
        at = min(id_ for id_ in entries[at].dependencies if id_ in inside)
    ids = list(path)
    ids = ids[ids.index(at) :]
    start = ids.index(min(ids))
    return (*ids[start:], *ids[:start])


def _closure(roots: Iterable[str], entries: Mapping[str, Entry]) -> set[str]:
    """The roots and all that they need."""
    found: set[str] = set()
    left = list(roots)
    while left:
        id_ = left.pop()
        if id_ not in found:
            found.add(id_)
            left.extend(entries[id_].dependencies)
    return found


_Context = tuple[Sequence[str], str, Callable[[str], float | None]]


def _skills(
    tools: Sequence[str],
    entries: Mapping[str, Entry],
    skills: Mapping[str, Entry],
    context: _Context,
) -> tuple[tuple[LinkedSkill, ...], tuple[str, ...]]:
    """Skills that apply to a tool first, then those of the context, the best first."""
    tags, model, score = context
    names: dict[str, list[str]] = {}
    for id_ in sorted(tools):
        for name in {id_, entries[id_].capability}:
            names.setdefault(name, []).append(id_)
    wanted = frozenset(tags)
    found: dict[str, LinkedSkill] = {}
    for id_ in sorted(skills):
        one = skills[id_]
        applied = {tool for name in one.applies_to for tool in names.get(name, ())}
        shared = wanted.intersection(one.tags)
        if not applied and not shared:
            continue
        given = one.variants.get(model, id_)
        given = given if given in skills else id_
        points = score(given)
        if points is None:
            continue
        known = found.get(given)
        if known is not None:
            applied |= set(known.tools)
            shared |= set(known.tags)
        stands_for = id_ if given != id_ else known.variant_of if known is not None else ""
        found[given] = LinkedSkill(
            given, points, tuple(sorted(applied)), tuple(sorted(shared)), stands_for
        )
    ordered = sorted(found.values(), key=_skill_order)
    return tuple(ordered[:MOST_SKILLS]), tuple(one.id for one in ordered[MOST_SKILLS:])


def _skill_order(one: LinkedSkill) -> tuple[bool, int, float, str]:
    return (not one.tools, -len(one.tags), -round(one.score, 9), one.id)


def _conflicts(
    found: Sequence[LinkedSkill], skills: Mapping[str, Entry]
) -> tuple[tuple[str, str], ...]:
    """Pairs of which at least one says that they contradict each other."""
    linked = {one.id for one in found}
    pairs = {
        (min(id_, other), max(id_, other))
        for id_ in linked
        for other in skills[id_].conflicts_with
        if other in linked and other != id_
    }
    return tuple(sorted(pairs))
