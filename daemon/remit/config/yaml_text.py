"""Values written as YAML, so that our strict reader reads exactly them back."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 100
_PLAIN = re.compile(
    r"[A-Za-z_./~][A-Za-z0-9_./~+=-]*(?: [A-Za-z0-9_./~+=-]+)*|https?://[A-Za-z0-9_.:-]+/[\w./~-]*",
    re.ASCII,
)
_WORDS = frozenset({"true", "false", "null", "~", "yes", "no", "on", "off", "y", "n"})


def scalar(value: str | float) -> str:
    """A single value; text that could be taken for anything else is quoted."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(int(value)) if value == int(value) else repr(float(value))
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    width = next(size for size in (2, 4, 8) if code < 16**size)
    return f"\\{ {2: 'x', 4: 'u', 8: 'U'}[width] }{code:0{width}x}"


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{scalar(k)}: {flow(v)}' for k, v in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(flow, value))}]"
    return scalar(value)


def pair_lines(key: str, value: Any, indent: int) -> list[str]:
    """A key with its value: on one line where that is short, else below it."""
    edge = " " * indent
    line = f"{edge}{scalar(key)}: {flow(value)}"
    if not value or isinstance(value, str | int | float):
        return [line]
    nested = isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values())
    if len(line) <= WIDTH and not (nested and len(value) > 1):
        return [line]
    if isinstance(value, Mapping):
        inside = [f"{edge}  {scalar(k)}: {flow(v)}" for k, v in value.items()]
    else:
        inside = [f"{edge}  - {flow(item)}" for item in value]
    return [f"{edge}{scalar(key)}:", *inside]
