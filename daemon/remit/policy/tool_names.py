"""Tool names for events: readable, reversible, never one name for two events.

`state:get` is shown as `state_get`, unless its handler asks for a name of its own. Names are given
to a caller among what that caller holds, so they tell nothing of what others have. Where two events
would share a name, each of them gets the long form with `__` for the colon instead. A name that was
shown once stays with its event: what comes later and wishes for it gets the long form.

Tools of upstream servers come after all others. `mcp:git:search` is shown as `search`, two servers'
as `mcp__git__search` and `mcp__web__search`; a name that an event of ours has or could have is
never given to an upstream tool of the same caller.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from weakref import WeakKeyDictionary

import msgspec

from remit.model.descriptor import CALL_TOOL, META_TOOL
from remit.model.event import Universe
from remit.model.upstream import NAMESPACE

_UPSTREAM = f"{NAMESPACE}:"
_RESERVED = frozenset({META_TOOL, CALL_TOOL})
"""What the doors call tools of their own: no event is shown as one of them."""
_LIMIT = 64
_MARK, _LONG_MARK = 8, 40
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_LOOKS_SURE = re.compile(rf"_[0-9a-f]{{{_LONG_MARK}}}\Z")
_LOOKS_MARKED = re.compile(rf"_([0-9a-f]{{{_MARK}}}|[0-9a-f]{{{_LONG_MARK}}})\Z")

Candidates = Mapping[str, tuple[str, ...]]
"""The names that each event may have, the one it wishes for first."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


class _Wishes(msgspec.Struct, frozen=True, eq=False):
    """What every list of tools asks about a universe; a universe never changes."""

    plain: Mapping[str, tuple[str, str]]
    """For each event that can be called the name it wishes for, and the long form of its own."""
    doubtful: Mapping[str, frozenset[str]]
    """Upstream tools that nobody vouches for, and the events of ours whose name they have."""


_wishes: "WeakKeyDictionary[Universe, _Wishes]" = WeakKeyDictionary()
_named: "WeakKeyDictionary[Universe, Mapping[str, str]]" = WeakKeyDictionary()


def tool_names(universe: Universe) -> Mapping[str, str]:
    """The tool name of every event that can be called, for one who holds them all."""
    found = _named.get(universe)
    if found is None:
        found = _named[universe] = MappingProxyType(names_for(universe, universe.names))
    return found


def names_for(
    universe: Universe, events: Iterable[str], kept: Mapping[str, str] = _NOTHING
) -> dict[str, str]:
    """The tool names of a caller.

    INVARIANT: no name of `kept` is given to another event, and nothing but `events` and `kept`
    counts: an event that the caller does not hold changes no name.

    Args:
        universe: the events that there are.
        events: what the caller holds; those that cannot be called are left out.
        kept: the names that it was shown before, by event.
    """
    wishes = _wishes_of(universe).plain
    held = [event for event in events if event in wishes]
    names = {event: kept[event] for event in held if event in kept}
    if len(names) == len(held):
        return names
    # What was renamed is the same event: it keeps its name.
    renamed = {universe.aliases[old]: kept[old] for old in kept if old in universe.aliases}
    for event in held:
        if event not in names and event in renamed:
            names[event] = renamed[event]
    ours: Candidates = {e: wishes[e] for e in held if not e.startswith(_UPSTREAM)}
    theirs: Candidates = {e: wishes[e] for e in held if e.startswith(_UPSTREAM)}
    claimed = _RESERVED.union(kept.values())
    given, claimed = _settled(ours, claimed, names)
    given |= _settled(theirs, claimed, names)[0]
    return names | given


def sure_name(event: str) -> str:
    """A name that can only ever be this event's, so that it need not be remembered."""
    return _marked(event, _LONG_MARK)


def is_sure(name: str) -> bool:
    """Tell whether a name looks like a `sure_name`."""
    return _LOOKS_SURE.search(name) is not None


def held_back(universe: Universe, events: Container[str]) -> frozenset[str]:
    """The upstream tools that somebody who holds `events` is not shown before a person looked.

    They are those with the name of a tool of ours that it holds as well.
    """
    doubtful = _wishes_of(universe).doubtful
    return frozenset(
        event
        for event, rivals in doubtful.items()
        if event in events and any(one in events for one in rivals)
    )


def shares_name(universe: Universe, event: str) -> bool:
    """Tell whether an upstream tool that nobody vouches for has the name of a tool of ours."""
    return event in _wishes_of(universe).doubtful


def _wishes_of(universe: Universe) -> _Wishes:
    found = _wishes.get(universe)
    if found is None:
        plain = _plain(universe)
        found = _wishes[universe] = _Wishes(plain, _doubtful(universe, plain))
    return found


def _doubtful(
    universe: Universe, plain: Mapping[str, tuple[str, str]]
) -> dict[str, frozenset[str]]:
    doubted = [e for e in plain if e.startswith(_UPSTREAM) and not universe.specs[e].vouched]
    if not doubted:
        return {}
    ours: dict[str, set[str]] = {}
    for event, names in plain.items():
        if not event.startswith(_UPSTREAM):
            for name in names:
                ours.setdefault(name, set()).add(event)
    return {e: frozenset(ours[plain[e][0]]) for e in doubted if plain[e][0] in ours}


def _plain(universe: Universe) -> dict[str, tuple[str, str]]:
    return {
        event: (_shape(_wish(universe, event)), _shape(event.replace(":", "__")))
        for event in _callable(universe)
    }


def _settled(
    plain: Candidates, claimed: frozenset[str], named: Container[str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Names for the events that have none, and all that any of these events could have.

    Nothing of what is claimed already is given. Fingerprints are worked out only where somebody
    needs one.
    """
    new = [event for event in plain if event not in named]
    candidates = plain
    names = _settle(new, candidates, claimed)
    if len(names) < len(new):
        candidates = {
            event: (*short, _marked(event, _MARK), _marked(event, _LONG_MARK))
            for event, short in plain.items()
        }
        names = _settle(new, candidates, claimed)
    return names, claimed.union(*candidates.values())


def _settle(new: Iterable[str], candidates: Candidates, claimed: frozenset[str]) -> dict[str, str]:
    """Give each event its first candidate that it alone has; one without any is left out.

    Because every candidate of every event counts, a new event takes names away and gives none.
    """
    claims = Counter(name for names in candidates.values() for name in set(names))
    names = {}
    for event in new:
        wanted = candidates[event]
        found = next((n for n in wanted if claims[n] == 1 and n not in claimed), None)
        if found is not None:
            names[event] = found
    return names


def conflicts(universe: Universe) -> list[tuple[str, list[str]]]:
    """The names that an event wished for and another could have too; each with all its events."""
    claims: dict[str, list[str]] = {}
    wished = set()
    for event, candidates in _plain(universe).items():
        wished.add(candidates[0])
        for name in dict.fromkeys(candidates):
            claims.setdefault(name, []).append(event)
    return sorted((n, claims[n]) for n in wished if len(claims[n]) > 1 or n in _RESERVED)


def _callable(universe: Universe) -> list[str]:
    """All events but those that are only pushed: they are no tools."""
    return [event for event in universe.names if not universe.specs[event].pushed]


def _wish(universe: Universe, event: str) -> str:
    return universe.specs[event].tool or event.replace(":", "_")


def _shape(name: str) -> str:
    """Only what every host accepts; what had to be changed or cut ends in a fingerprint.

    INVARIANT: what looks like a fingerprint is one, so nobody can choose a name that equals another
    event's marked name.
    """
    fits = len(name) <= _LIMIT and not _FOREIGN.search(name) and not _LOOKS_MARKED.search(name)
    return name if fits else _fingerprinted(name, name, _MARK)


def _marked(event: str, size: int) -> str:
    return _fingerprinted(event.replace(":", "__"), event, size)


def _fingerprinted(text: str, original: str, size: int) -> str:
    import hashlib  # noqa: PLC0415 - 3 ms, and few names need a fingerprint

    mark = hashlib.sha256(original.encode()).hexdigest()[:size]
    return f"{_FOREIGN.sub('_', text)[: _LIMIT - size - 1]}_{mark}"
