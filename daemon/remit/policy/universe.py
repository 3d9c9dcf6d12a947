"""All events that exist in one revision, numbered so that sets of them are plain integers.

Names are sorted, so the events under a prefix are one run of neighbours and a wildcard expands to a
mask without looking at each name.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import compress

import msgspec

from remit.model.event import EFFECTS, Effect, EventSpec, effect_at_most
from remit.model.names import EventPattern

_AFTER_ANY_NAME = "\U0010ffff"
_FEW = 12
_TO_SELECTORS = bytes.maketrans(b"01", b"\0\1")


class Universe(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The events of one revision."""

    specs: Mapping[str, EventSpec]
    names: tuple[str, ...]
    index: Mapping[str, int]
    aliases: Mapping[str, str]
    named_only: int
    """Bits of the events that no wildcard grants."""
    approved_only: int = 0
    """Bits of the events whose every call needs an operator's yes."""
    pushed: int = 0
    """Bits of the events that nobody calls: they are no tools."""
    at_most: Mapping[Effect, int] = {}
    """Bits of the events that do no more than that; one of unknown effect is in none of them."""

    @property
    def everything(self) -> int:
        """The bits of all events."""
        return (1 << len(self.names)) - 1

    def canonical(self, name: str) -> str:
        """The present name of an event that may have been asked for by an old one."""
        return self.aliases.get(name, name)

    def present(self, pattern: EventPattern) -> EventPattern:
        """The pattern by present names: an event that is named by an old one gets its new one."""
        if pattern.exact and pattern.prefix in self.aliases:
            return EventPattern(self.aliases[pattern.prefix], exact=True)
        return pattern

    def granted_by(self, pattern: EventPattern) -> int:
        """The bits that a pattern grants: a wildcard passes over the events that must be named."""
        if pattern.exact:
            return self._bit(self.canonical(pattern.prefix))
        return self._run(pattern.prefix) & ~self.named_only

    def denied_by(self, pattern: EventPattern) -> int:
        """The bits that a pattern denies: everything it covers by any name, old ones included."""
        if pattern.exact:
            return self._bit(self.canonical(pattern.prefix))
        return self._run(pattern.prefix) | self.bits_of(self._by_old_name(pattern))

    def denials(self, pattern: EventPattern) -> list[EventPattern]:
        """A denial by present names; what a wildcard covers by an old name is named as well."""
        if pattern.exact:
            return [self.present(pattern)]
        return [pattern, *(EventPattern(n, exact=True) for n in self._by_old_name(pattern))]

    def names_in(self, bits: int) -> list[str]:
        """The names of a set of events, sorted."""
        if bits.bit_count() <= _FEW:
            return self._few_names(bits)
        selectors = bin(bits)[:1:-1].encode().translate(_TO_SELECTORS)
        return list(compress(self.names, selectors))

    def _few_names(self, bits: int) -> list[str]:
        """Bit by bit: for a handful of events far cheaper than a look at every name."""
        names = []
        while bits:
            lowest = bits & -bits
            names.append(self.names[lowest.bit_length() - 1])
            bits ^= lowest
        return names

    def bits_of(self, names: Iterable[str]) -> int:
        """The set of the events with these names; unknown ones are left out."""
        bits = 0
        for name in names:
            bits |= self._bit(name)
        return bits

    def _by_old_name(self, pattern: EventPattern) -> list[str]:
        return [name for alias, name in self.aliases.items() if pattern.covers(alias)]

    def _bit(self, name: str) -> int:
        at = self.index.get(name)
        return 0 if at is None else 1 << at

    def _run(self, prefix: str) -> int:
        low = bisect_left(self.names, prefix)
        high = bisect_left(self.names, prefix + _AFTER_ANY_NAME)
        return ((1 << (high - low)) - 1) << low


def make_universe(specs: Iterable[EventSpec]) -> Universe:
    """Number the events."""
    by_name: dict[str, EventSpec] = {spec.name: spec for spec in specs}
    names = tuple(sorted(by_name))
    index = {name: at for at, name in enumerate(names)}
    # An event that exists is never taken over by an old name of another one.
    aliases: dict[str, str] = {
        alias: name for name in names for alias in by_name[name].aliases if alias not in by_name
    }
    named_only = sum(1 << index[name] for name in names if not by_name[name].wildcard)
    approved_only = sum(1 << index[name] for name in names if by_name[name].approval)
    pushed = sum(1 << index[name] for name in names if by_name[name].pushed)
    at_most: dict[Effect, int] = {
        effect: sum(1 << index[name] for name in names if effect_at_most(by_name[name], effect))
        for effect in EFFECTS
    }
    return Universe(by_name, names, index, aliases, named_only, approved_only, pushed, at_most)
