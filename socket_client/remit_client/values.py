"""Values that travel: what msgpack and JSON can both write, and every reader takes alike.

That is null, booleans, text, whole numbers of 64 bits, finite floats, lists of these, and mappings
from text to these. What one format alone can carry would be lost, changed or fatal on the way to a
reader of the other one, so nobody may send it.
"""

import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

LOWEST, HIGHEST = -(2**63), 2**64 - 1
DEEPEST = 100
"""So many lists and mappings may lie inside one another."""
MOST = 200_000
"""So many values and keys lie in one: each costs a reader far more memory than it has bytes."""

_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})
_LISTS = (list, tuple, set, frozenset)
_SHOWN = 60


class Misfit(NamedTuple):
    """A part of a value that cannot travel: where it lies, and what is wrong with it."""

    path: str
    problem: str


def misfit(value: Any) -> Misfit | None:
    """The first part of a value that one of the formats could not carry; None: all of it can."""
    # Level by level, because the interpreter looks at a whole level much faster than at its parts.
    level = [value]
    count = 0
    for _ in range(DEEPEST):
        count += len(level)
        if count > MOST:
            return Misfit("$", f"more than {MOST:,} values lie in it")
        if not _is_plain(level):
            return _find(value)
        level = [
            *chain.from_iterable(
                one.values() if type(one) is dict else one
                for one in level
                if one and type(one) in (dict, list)
            )
        ]
        if not level:
            return None
    return _find(value)


def _is_plain(level: list[Any]) -> bool:
    """Tell at a glance whether values are fine, apart from what is inside of them."""
    kinds = set(map(type, level))
    if not kinds <= _PLAIN:
        return False
    if int in kinds and not all(LOWEST <= one <= HIGHEST for one in level if type(one) is int):
        return False
    if float in kinds and not all(math.isfinite(one) for one in level if type(one) is float):
        return False
    if str in kinds and not _is_text("".join(one for one in level if type(one) is str)):
        return False
    if dict not in kinds:
        return True
    keys = [*chain.from_iterable(one for one in level if type(one) is dict)]
    return set(map(type, keys)) <= {str} and _is_text("".join(keys))


def _find(value: Any) -> Misfit | None:
    """The same with care: where it lies, and with the types that stand for plain ones."""
    waiting = [(value, "$", 0)]
    while waiting:
        one, path, depth = waiting.pop()
        problem = _problem(one, depth)
        if problem:
            return Misfit(path, problem)
        if isinstance(one, dict):
            odd = [key for key in one if not isinstance(key, str) or not _is_text(key)]
            if odd:
                return Misfit(path, f"the key {ascii(odd[0])[:_SHOWN]} is not text")
        waiting += reversed([(part, path + name, depth + 1) for name, part in _parts(one)])
    return None


def _problem(value: Any, depth: int) -> str:
    """What is wrong with a value, apart from what is inside of it."""
    match value:
        case None | bool():
            return ""
        case str():
            return "" if _is_text(value) else f"{ascii(value)[:_SHOWN]} is not Unicode text"
        case int():
            return "" if LOWEST <= value <= HIGHEST else "this whole number has more than 64 bits"
        case float():
            return "" if math.isfinite(value) else f"{value} has no form in JSON"
        case dict() | list() | tuple() | set() | frozenset():
            return "" if depth < DEEPEST else f"more than {DEEPEST} levels lie inside one another"
        case _:
            return f"a value of the kind {type(value).__name__} has no form in JSON"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield (f".{key}" if key.isidentifier() else f"[{json.dumps(key[:_SHOWN])}]"), part
    elif isinstance(value, _LISTS):
        for at, part in enumerate(value):
            yield f"[{at}]", part


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
