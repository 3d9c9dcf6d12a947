"""JSON Schemas of strangers: which can be used, and whether a value fits one.

A schema of a few lines can take forever to check: references that double at each step. So what the
references of a schema unfold to is counted before it is used. Where that does not bound the work,
as when a schema refers to itself, the steps for the value at hand are counted first.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from remit.model.schema import schema_mistakes, shown

Step = tuple[Any, Any]

_HERE = frozenset({"not", "if", "then", "else"})
_HERE_EACH = frozenset({"allOf", "anyOf", "oneOf", "dependentSchemas"})
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_ITEMS = frozenset({"items", "prefixItems", "contains", "unevaluatedItems", "additionalItems"})
_MEMBERS = frozenset({"additionalProperties", "unevaluatedProperties", "propertyNames"})
_NAMED_MEMBERS = frozenset({"properties", "patternProperties"})
MOST_STEPS = 100_000
"""What the references of a schema may unfold to."""
_FEW_STEPS = 2_000_000
_MANY_STEPS = 300_000
_DEEPEST = 200
_LONGEST = 300


class Checker:
    """A schema that was found usable, ready to check values."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import jsonschema_rs  # noqa: PLC0415 - 30 ms and 14 MB, for those that check

        self._schema = schema
        self._unfolding = _Unfolding(schema)
        self._validator = jsonschema_rs.Draft202012Validator(
            dict(schema), retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )

    def mistake(self, value: Any) -> str:
        """Where a value does not fit, and why; empty when it does.

        Up to a second for a large value: then call it in a thread.
        """
        if self._is_long(value) and takes_more_than(_MANY_STEPS, self._schema, value):
            return "it takes too long to check"
        try:
            error = next(iter(self._validator.iter_errors(value)), None)
        except ValueError as unreadable:
            return _bounded(str(unreadable))
        if error is None:
            return ""
        return _bounded(f"{shown(tuple(error.instance_path))}: {error.message}")

    def _is_long(self, value: Any) -> bool:
        """Tell whether it may take long: a part of a value has at least one byte."""
        if self._unfolding.loops:
            return True
        return self._unfolding.steps * len(msgspec.json.encode(value)) > _FEW_STEPS


def unusable(schema: Mapping[str, Any]) -> str:
    """Why a schema cannot be used; empty when it can."""
    found = schema_mistakes(schema)
    if found:
        return _bounded(f"{shown(found[0].path)}: {found[0].message}")
    try:
        _Unfolding(schema)
    except _UnboundedError as error:
        return str(error)
    return ""


class _UnboundedError(Exception):
    """The references of a schema unfold to more than is checked."""


class _Unfolding:
    """What the references of a schema unfold to: how many steps, and whether some lead back."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._whole = schema
        self._known: dict[int, int] = {}
        self._open: set[int] = set()
        self.loops = False
        self.steps = self._count(schema, 0)

    def _count(self, node: Any, depth: int) -> int:
        if depth > _DEEPEST:
            raise _UnboundedError(f"its references are deeper than {_DEEPEST}")
        if id(node) in self._known:
            return self._known[id(node)]
        if id(node) in self._open:
            self.loops = True
            return 1
        self._open.add(id(node))
        steps = 1 + sum(self._count(inside, depth + 1) for inside in self._inside(node))
        self._open.discard(id(node))
        if steps > MOST_STEPS:
            raise _UnboundedError(f"its references unfold to more than {MOST_STEPS:,} steps")
        self._known[id(node)] = steps
        return steps

    def _inside(self, node: Any) -> Iterator[Any]:
        parts = node.items() if isinstance(node, Mapping) else enumerate(node)
        for name, value in parts:
            if isinstance(value, dict | list):
                yield value
            elif name in ("$ref", "$dynamicRef", "$recursiveRef"):
                target = resolve(self._whole, value)
                if isinstance(target, dict | list):
                    yield target


def takes_more_than(most: int, schema: Mapping[str, Any], value: Any) -> bool:
    """Tell whether checking a value takes more steps.

    It only follows which parts of the schema look at which parts of the value, as if none of them
    ever ended early: so a real check takes no more steps.
    """
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


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} lies outside: a schema refers to its own parts only")


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
