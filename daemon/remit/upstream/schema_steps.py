"""How many steps it takes to check a value against a schema, counted up to a bound.

It only follows which parts of the schema look at which parts of the value, as if none of them ever
ended early: so a real check takes no more steps.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Step = tuple[Any, Any]

_HERE = frozenset({"not", "if", "then", "else"})
_HERE_EACH = frozenset({"allOf", "anyOf", "oneOf", "dependentSchemas"})
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_ITEMS = frozenset({"items", "prefixItems", "contains", "unevaluatedItems", "additionalItems"})
_MEMBERS = frozenset({"additionalProperties", "unevaluatedProperties", "propertyNames"})
_NAMED_MEMBERS = frozenset({"properties", "patternProperties"})


def takes_more_than(most: int, schema: Mapping[str, Any], value: Any) -> bool:
    """Tell whether a check takes more steps."""
    waiting: list[Step] = [(schema, value)]
    for _ in range(most):
        if not waiting:
            return False
        part, inside = waiting.pop()
        if not isinstance(part, dict):
            continue
        for key, below in part.items():
            waiting += _below(schema, key, below, inside)
        if len(waiting) > most:
            return True
    return bool(waiting)


def resolve(whole: Any, reference: Any) -> Any:
    """Where a reference leads; to the whole where that is hard to say."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return whole
    present = whole
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(present, Mapping) and key in present:
            present = present[key]
        elif isinstance(present, list) and key.isdecimal() and int(key) < len(present):
            present = present[int(key)]
        else:
            return whole
    return present


def _below(whole: Any, key: str, below: Any, value: Any) -> Iterable[Step]:
    """Which parts of a schema under a key look at which parts of a value."""
    if key in _REFERENCES:
        return ((resolve(whole, below), value),)
    if not isinstance(below, dict | list):
        return ()
    if key in _HERE:
        return ((below, value),)
    if key in _HERE_EACH:
        return ((one, value) for one in (below if isinstance(below, list) else below.values()))
    if isinstance(value, list):
        return _items(key, below, value)
    return _members(key, below, value) if isinstance(value, dict) else ()


def _items(key: str, below: Any, value: list[Any]) -> Iterable[Step]:
    if key not in _ITEMS:
        return ()
    if isinstance(below, list):
        return zip(below, value, strict=False)
    return ((below, one) for one in value)


def _members(key: str, below: Any, value: dict[str, Any]) -> Iterable[Step]:
    if key in _MEMBERS:
        return ((below, one) for one in value.values())
    if key not in _NAMED_MEMBERS or not isinstance(below, dict):
        return ()
    if key == "properties":
        return ((below[name], value[name]) for name in below.keys() & value.keys())
    return ((one, inside) for one in below.values() for inside in value.values())
