"""Tool names for events: readable, reversible, never one name for two events.

`state:get` is shown as `state_get`, unless its handler asks for a name of its own. Where two events
would share a name, each of them gets the long form with `__` for the colon instead, so adding an
event can make an old tool name vanish but never make it mean something else.
"""

import re
from collections import Counter
from collections.abc import Mapping

from remit.policy.universe import Universe

_LIMIT = 64
_MARK, _LONG_MARK = 8, 40
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_LOOKS_MARKED = re.compile(rf"_([0-9a-f]{{{_MARK}}}|[0-9a-f]{{{_LONG_MARK}}})$")


def tool_names(universe: Universe) -> dict[str, str]:
    """The tool name of every event: the first of its candidates that no other event could have.

    Because every candidate of every event counts, a new event takes names away and gives none.
    """
    plain = {
        event: (_shape(_wish(universe, event)), _shape(event.replace(":", "__")))
        for event in _callable(universe)
    }
    names = _settle(plain)
    if len(names) == len(plain):
        return names
    return _settle(
        {
            event: (*candidates, _marked(event, _MARK), _marked(event, _LONG_MARK))
            for event, candidates in plain.items()
        }
    )


def _settle(candidates: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Give each event its first candidate that it alone has; one without any is left out."""
    claims = Counter(name for names in candidates.values() for name in set(names))
    free = {event: [n for n in names if claims[n] == 1] for event, names in candidates.items()}
    return {event: names[0] for event, names in free.items() if names}


def conflicts(universe: Universe) -> list[tuple[str, list[str]]]:
    """The short names that more than one event wished for."""
    wishes: dict[str, list[str]] = {}
    for event in _callable(universe):
        wishes.setdefault(_shape(_wish(universe, event)), []).append(event)
    return sorted((name, events) for name, events in wishes.items() if len(events) > 1)


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
