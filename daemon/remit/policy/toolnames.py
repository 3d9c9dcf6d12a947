"""Tool names for events: readable, reversible, never one name for two events.

`state:get` is shown as `state_get`, unless its handler asks for a name of its own. Where two events
would share a name, each of them gets the long form with `__` for the colon instead, so adding an
event can make an old tool name vanish but never make it mean something else.

Tools of outside servers come after all others. `mcp:git:search` is shown as `search`, two servers'
as `mcp__git__search` and `mcp__web__search`; a name that any event of ours has or could have is
never an outside tool's. So whoever adds a server changes the name of no tool but those of servers,
and the one name that can come to mean another event is an outside tool's, which becomes ours.
"""

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from weakref import WeakKeyDictionary

from remit.model.meta_tool import CALL_TOOL, META_TOOL
from remit.model.upstream import NAMESPACE
from remit.policy.universe import Universe

_OUTSIDE = f"{NAMESPACE}:"
_RESERVED = frozenset({META_TOOL, CALL_TOOL})
"""What the doors call tools of their own: no event is shown as one of them."""
_LIMIT = 64
_MARK, _LONG_MARK = 8, 40
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_LOOKS_MARKED = re.compile(rf"_([0-9a-f]{{{_MARK}}}|[0-9a-f]{{{_LONG_MARK}}})$")


_named: "WeakKeyDictionary[Universe, Mapping[str, str]]" = WeakKeyDictionary()
"""What was worked out already: a universe never changes, and every list of tools asks."""


def tool_names(universe: Universe) -> Mapping[str, str]:
    """The tool name of every event that can be called."""
    found = _named.get(universe)
    if found is None:
        found = _named[universe] = MappingProxyType(_work_out(universe))
    return found


def _work_out(universe: Universe) -> dict[str, str]:
    """Our own events first, as if there were no others; then the tools of outside servers."""
    plain = _plain(universe)
    outside = {event: some for event, some in plain.items() if event.startswith(_OUTSIDE)}
    ours = {event: some for event, some in plain.items() if event not in outside}
    names, claimed = _settled(ours, _RESERVED)
    return {**names, **_settled(outside, claimed)[0]} if outside else names


def _plain(universe: Universe) -> dict[str, tuple[str, str]]:
    """For each event the name it wishes for, and the long form of its own."""
    return {
        event: (_shape(_wish(universe, event)), _shape(event.replace(":", "__")))
        for event in _callable(universe)
    }


def _settled(
    plain: Mapping[str, tuple[str, ...]], claimed: frozenset[str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Names for events, and all that any of them could have had; none of what is claimed already.

    Fingerprints are worked out only where somebody needs one.
    """
    candidates: Mapping[str, tuple[str, ...]] = plain
    names = _settle(candidates, claimed)
    if len(names) < len(plain):
        candidates = {
            event: (*short, _marked(event, _MARK), _marked(event, _LONG_MARK))
            for event, short in plain.items()
        }
        names = _settle(candidates, claimed)
    return names, claimed.union(*candidates.values())


def _settle(candidates: Mapping[str, tuple[str, ...]], claimed: frozenset[str]) -> dict[str, str]:
    """Give each event its first candidate that it alone has; one without any is left out.

    Because every candidate of every event counts, a new event takes names away and gives none.
    """
    claims = Counter(name for names in candidates.values() for name in set(names))
    names = {}
    for event, wanted in candidates.items():
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
