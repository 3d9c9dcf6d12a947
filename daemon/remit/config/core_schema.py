"""What YAML 1.2 takes a value for, by its core schema.

Our own files are read more strictly. The frontmatter of a skill is not ours: hosts read it with
libraries of their own and refuse a skill about which they are told something else.
"""

import math
import re

from remit.config.nodes import JsonScalar, Node, Scalar, Sequence

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST = 400
"""Digits of a number; longer ones are no JSON that anybody reads alike."""
_EXACT = 2**53


def core_json(node: Node) -> object:
    """The plain value of a node. Depth is capped already."""
    if isinstance(node, Scalar):
        return _meaning(node.text) if node.plain else node.text
    if isinstance(node, Sequence):
        return [core_json(item) for item in node.items]
    return {key.text: core_json(value) for key, value in node.pairs}


def _meaning(text: str) -> JsonScalar:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST:
        return text
    if _WHOLE.fullmatch(text):
        return _exact(int(text))
    if _BASED.fullmatch(text):
        return _exact(int(text[2:], 8 if text[1] == "o" else 16))
    if _NUMBER.fullmatch(text):
        return _finite(float(text), text)
    return text


def _exact(number: int) -> int | float | str:
    """The number as JSON's readers have it: beyond 53 bits they all keep the nearest float."""
    return number if abs(number) < _EXACT else _finite_float(number)


def _finite_float(number: int) -> float | str:
    try:
        return float(number)
    except OverflowError:
        return str(number)


def _finite(number: float, text: str) -> float | str:
    return number if math.isfinite(number) else text
