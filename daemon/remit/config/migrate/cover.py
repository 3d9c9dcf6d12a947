"""The cheapest cover of a set: named pieces where they pay, single entries for the rest.

Sets are bits. A piece costs one entry, each thing it gives beside what is wanted costs one more (it
has to be taken away again), and whatever no piece covers costs one entry for itself. Pieces that
share nothing are decided apart from each other; a group of pieces is searched exactly while it is
small and the steps last, and otherwise improved step by step from a greedy start.
"""

from collections.abc import Iterable, Mapping

import msgspec

MAX_EXACT = 24
MAX_STEPS = 40_000
MAX_ROUNDS = 8


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


Score = tuple[int, int, tuple[str, ...]]


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
