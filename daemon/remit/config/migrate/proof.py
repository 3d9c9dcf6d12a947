"""Whom a rewritten profile touches, the cheapest way to say it, and the proof that it is the same.

A rewrite must be right for every value of the variables and for every profile that builds on the
rewritten one. So what a profile always says is told apart from what is said only under a condition,
through a variable, or by somebody who builds on it.

The answer is the cheapest cover: named pieces where they pay, single entries for the rest. Sets are
bits. A piece costs one entry, each thing it gives beside what is wanted costs one more (it has to
be taken away again), and whatever no piece covers costs one entry for itself. Pieces that share
nothing are decided apart from each other; a group of pieces is searched exactly while it is small
and the steps last, and otherwise improved step by step from a greedy start.
"""

from collections.abc import Iterable, Mapping
from itertools import islice, product
from typing import Any

import msgspec

from remit.errors import ConflictError, DefinitionError
from remit.model.composition import Composition, Condition, Part, Scalar
from remit.model.event import Universe
from remit.policy.catalogue import Catalogue, Definitions
from remit.policy.compile import compile_definitions, lineages, resolve
from remit.policy.plan import compare

MAX_ENVIRONMENTS = 64
MAX_EXACT = 24
MAX_STEPS = 40_000
MAX_ROUNDS = 8
Score = tuple[int, int, tuple[str, ...]]


class Kin(msgspec.Struct, frozen=True, kw_only=True):
    """A profile, all it builds on, and all that build on it."""

    profile: Composition
    steady: tuple[Composition, ...]
    """The profile and what it always builds on, reduced to what they always say."""
    dependents: tuple[str, ...]
    everyone: tuple[Composition, ...]
    """All compositions that are needed to resolve the profile and its dependents."""
    perhaps: tuple[Part, ...]
    """What may be said beside the steady parts."""
    unreliable: frozenset[str]
    """Capabilities that somebody may switch off."""


def kin_of(catalogue: Catalogue, profile: Composition) -> Kin:
    """Find everybody that a change of this profile can touch."""
    compositions = {**catalogue.compositions, profile.name: profile}
    lines = lineages(compositions, [])
    dependents = sorted(
        name for name, line in lines.items() if profile in line and name != profile.name
    )
    touched = {c.name: c for name in (profile.name, *dependents) for c in lines[name]}
    always = _always(compositions, profile)
    # Whoever builds on the profile may also build on its parents directly, beside it: then the
    # profile's own word no longer stands over theirs.
    settled = {profile.name} if dependents else always
    perhaps = [
        part
        for name, composition in sorted(touched.items())
        for part in (_shaky(composition) if name in settled else composition.parts)
    ]
    names = catalogue.names
    off = {
        names[f.capability] for p in perhaps for f in p.flags if not f.on and f.capability in names
    }
    stopped = [_stopped_flags(c, catalogue, off) for name, c in touched.items() if name in always]
    return Kin(
        profile=profile,
        steady=tuple(_steady(touched[name], catalogue, off) for name in sorted(always)),
        dependents=tuple(dependents),
        everyone=tuple(touched.values()),
        perhaps=(*perhaps, *stopped),
        unreliable=frozenset(off),
    )


def _always(compositions: dict[str, Composition], profile: Composition) -> set[str]:
    """The names reached without any condition."""
    reached: set[str] = set()
    frontier = [profile.name]
    while frontier:
        name = frontier.pop()
        if name not in reached and name in compositions:
            reached.add(name)
            frontier += [ref.name for ref in compositions[name].extends]
            frontier += [mixin.ref.name for mixin in compositions[name].mixins if not mixin.when]
    return reached


def _shaky(composition: Composition) -> Iterable[Part]:
    for part in composition.parts:
        if part.when:
            yield part
        else:
            yield Part(allowed=tuple(text for text in part.allowed if text.is_open))


def _stopped_flags(composition: Composition, catalogue: Catalogue, off: set[str]) -> Part:
    flags = [flag for part in composition.parts for flag in part.flags if flag.on]
    return Part(flags=tuple(f for f in flags if catalogue.names.get(f.capability) in off))


def _steady(composition: Composition, catalogue: Catalogue, off: set[str]) -> Composition:
    return msgspec.structs.replace(
        composition,
        mixins=tuple(mixin for mixin in composition.mixins if not mixin.when),
        parts=tuple(
            msgspec.structs.replace(
                part,
                flags=tuple(
                    f
                    for f in part.flags
                    if not f.on or catalogue.names.get(f.capability) not in off
                ),
                allowed=tuple(text for text in part.allowed if not text.is_open),
                disallowed=tuple(text for text in part.disallowed if not text.is_open),
            )
            for part in composition.parts
            if not part.when
        ),
    )


def compile_beside(
    catalogue: Catalogue, compositions: Iterable[Composition], universe: Universe
) -> Catalogue:
    """Compile profiles with the capabilities and approvals of a catalogue.

    Without any `max_effect`: what is the same without it is the same under it, whatever the events
    do that are written down already and do not exist yet.
    """
    return compile_definitions(
        Definitions(tuple(catalogue.capabilities.values()), tuple(map(_unlimited, compositions))),
        universe,
        revision=catalogue.revision,
        approvals=catalogue.approvals,
    )


def _unlimited(composition: Composition) -> Composition:
    parts = (msgspec.structs.replace(part, max_effect=None) for part in composition.parts)
    return msgspec.structs.replace(composition, parts=tuple(parts))


def prove_same(
    catalogue: Catalogue, kin: Kin, written: Universe, migrated: Composition
) -> dict[str, list[Any]]:
    """Compare before and after for everybody; answers the limits that change.

    Raises:
        ConflictError: somebody would be granted something else than before.
    """
    name = migrated.name
    everyone = [migrated if c.name == name else c for c in kin.everyone]
    changed: dict[str, list[Any]] = {}
    for universe in (written, catalogue.universe):
        before = compile_beside(catalogue, kin.everyone, universe)
        try:
            after = compile_beside(catalogue, everyone, universe)
        except DefinitionError as error:
            raise _failure(name, name, error.problems[0].message) from error
        for profile in (name, *kin.dependents):
            _compare(before, after, profile, name)
        changed = compare(before.grants[name], after.grants[name]).limits_changed
    return changed


def _compare(before: Catalogue, after: Catalogue, profile: str, migrated: str) -> None:
    for variables in _environments(before, profile):
        try:
            old = resolve(before, profile, variables=variables)
        except DefinitionError:
            continue  # a value that the profile refuses, before and after
        new = resolve(after, profile, variables=variables)
        difference = sorted(
            (old.events ^ new.events)
            | (old.exposed ^ new.exposed)
            | (old.claude_tools ^ new.claude_tools)
        )
        if difference:
            raise _failure(migrated, profile, f"{', '.join(difference[:5])} would change")


def _failure(migrated: str, profile: str, why: str) -> ConflictError:
    return ConflictError(
        f"no equal set of capabilities was found for {migrated!r}: in {profile!r} {why}",
        hint="leave the explicit list as it is, or split the profile",
    )


def _environments(catalogue: Catalogue, profile: str) -> list[dict[str, Scalar]]:
    """Values worth trying: the defaults, and all that conditions and declarations name."""
    lineage = catalogue.lineages[profile]
    values: dict[str, dict[Scalar, None]] = {}
    for name, variable in sorted(catalogue.variables[profile].items()):
        both: tuple[Scalar, ...] = (True, False) if variable.type == "boolean" else ()
        values[name] = dict.fromkeys((variable.default, *variable.allowed_values, *both))
    for condition in _conditions(lineage):
        values.setdefault(condition.variable, {})[condition.value] = None
    combinations = product(*values.values())
    return [
        dict(zip(values, combination, strict=True))
        for combination in islice(combinations, MAX_ENVIRONMENTS)
    ]


def _conditions(lineage: Iterable[Composition]) -> list[Condition]:
    return [
        condition
        for composition in lineage
        for when in (
            *(part.when for part in composition.parts),
            *(mixin.when for mixin in composition.mixins),
        )
        for condition in when
    ]


class Piece(msgspec.Struct, frozen=True):
    """Something that can be chosen."""

    covers: int
    """What it gives of the things that are needed."""
    extra: int = 0
    """What it gives beside, and has to be taken away again."""


class Star(msgspec.Struct, frozen=True):
    """A wildcard entry that covers several things at the price of one."""

    covers: int
    mark: int
    """The bit that stands for events which do not exist yet: without it the wildcard must stay."""


class Need(msgspec.Struct, frozen=True):
    """A cover problem: the things that are wanted, and the pieces that may cover them."""

    wanted: int
    pieces: Mapping[str, Piece]
    stars: tuple[Star, ...] = ()
    """Broadest first."""

    def rest(self, covered: int) -> tuple[int, int]:
        """The stars that must stay and the single things left, each as bits."""
        stars = 0
        for at, star in enumerate(self.stars):
            if star.mark & self.wanted & ~covered:
                covered |= star.covers
                stars |= 1 << at
        return stars, self.wanted & ~covered


def score(need: Need, names: Iterable[str]) -> Score:
    """The price of a choice, then what breaks ties: fewer single entries, then names."""
    chosen = tuple(sorted(names))
    covered = 0
    extra = 0
    for name in chosen:
        covered |= need.pieces[name].covers
        extra |= need.pieces[name].extra
    loose = _count(need.rest(covered))
    return len(chosen) + extra.bit_count() + loose, loose, chosen


def cheapest(need: Need) -> tuple[str, ...]:
    """The pieces to choose, sorted."""
    useful = {name: piece for name, piece in need.pieces.items() if piece.covers & need.wanted}
    chosen: list[str] = []
    for group in _groups(need, useful):
        part = Need(_reach(need, group), {name: useful[name] for name in group}, need.stars)
        chosen += _search(part)
    return tuple(sorted(chosen))


def _reach(need: Need, group: Iterable[str]) -> int:
    """Everything wanted that this group has a say in."""
    bits = 0
    for name in group:
        bits |= need.pieces[name].covers
    for star in need.stars:
        bits |= star.covers | star.mark if star.covers & bits else 0
    return bits & need.wanted


def _groups(need: Need, pieces: Mapping[str, Piece]) -> list[list[str]]:
    """Pieces that share something, directly or through others, stay together."""
    groups: list[tuple[int, list[str]]] = []
    for name in sorted(pieces):
        bits = pieces[name].covers | pieces[name].extra
        for star in need.stars:
            bits |= star.covers if star.covers & bits else 0
        members = [name]
        apart = []
        for other, names in groups:
            if other & bits:
                bits |= other
                members += names
            else:
                apart.append((other, names))
        groups = [*apart, (bits, members)]
    return [sorted(members) for _, members in groups]


def _search(need: Need) -> tuple[str, ...]:
    best = _improve(need, _greedy(need))
    if len(need.pieces) > MAX_EXACT:
        return best
    return _Search(need, best).run()


def _greedy(need: Need) -> tuple[str, ...]:
    chosen: tuple[str, ...] = ()
    for _ in need.pieces:
        options = (score(need, (*chosen, name)) for name in need.pieces if name not in chosen)
        best = min(options, default=None)
        if best is None or best >= score(need, chosen):
            break
        chosen = best[2]
    return chosen


def _improve(need: Need, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Drop, add and swap single pieces while that helps, for a bounded number of rounds."""
    best = score(need, chosen)
    for _ in range(MAX_ROUNDS):
        held = set(best[2])
        outside = [name for name in need.pieces if name not in held]
        options = [score(need, held - {name}) for name in held]
        options += [score(need, held | {name}) for name in outside]
        options += [score(need, held - {out} | {name}) for out in held for name in outside]
        found = min(options, default=best)
        if found >= best:
            break
        best = found
    return best[2]


class _Search:
    """Branch and bound over the pieces in order of name; exact unless the steps run out."""

    def __init__(self, need: Need, start: tuple[str, ...]) -> None:
        self._need = need
        self._names = sorted(need.pieces)
        self._best = score(need, start)
        self._steps = 0
        self._after = [0]
        for name in reversed(self._names):
            self._after.append(self._after[-1] | need.pieces[name].covers)
        self._after.reverse()

    def run(self) -> tuple[str, ...]:
        pending: list[tuple[int, tuple[str, ...], int, int]] = [(0, (), 0, 0)]
        while pending and self._steps < MAX_STEPS:
            self._steps += 1
            at, chosen, covered, extra = pending.pop()
            if self._hopeless(at, chosen, covered, extra):
                continue
            if at == len(self._names):
                self._best = min(self._best, score(self._need, chosen))
                continue
            piece = self._need.pieces[self._names[at]]
            taken = (*chosen, self._names[at])
            pending.append((at + 1, chosen, covered, extra))
            pending.append((at + 1, taken, covered | piece.covers, extra | piece.extra))
        return self._best[2]

    def _hopeless(self, at: int, chosen: tuple[str, ...], covered: int, extra: int) -> bool:
        """Tell whether even the luckiest continuation costs more than the best that is known."""
        loose = _count(self._need.rest(covered | self._after[at]))
        price = len(chosen) + extra.bit_count() + loose
        # Whatever later pieces must still cover costs one of them at least.
        price += _count(self._need.rest(covered)) > loose
        return (price, loose) > self._best[:2]


def _count(rest: tuple[int, int]) -> int:
    stars, singles = rest
    return stars.bit_count() + singles.bit_count()
