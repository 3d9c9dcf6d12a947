"""What has changed in the definition of an outside tool, field by field, for a person to read."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from remit.model.upstream import OutsideTool

MAX_CHANGES = 40
MAX_TEXT = 1_000
_MOST_PARTS = 200_000
"""More than a definition can have."""
_FIELDS = ("title", "description", "input_schema", "output_schema", "annotations")
_USUAL: tuple[tuple[str, Any], ...] = (
    ("title", ""),
    ("description", ""),
    ("input_schema", {}),
    ("output_schema", None),
    ("annotations", {}),
)
_PLAIN = re.compile(r"[\w$-]+")
_BEFORE = 100


def tool_diff(before: OutsideTool | None, after: OutsideTool | None) -> list[dict[str, Any]]:
    """Each field that is not the same, with what it was and what it is; bounded.

    Without `before` everything that the tool says is told. What is not there is None.
    """
    if after is None:
        return []
    old = dict(_parts(before)) if before is not None else {}
    new = dict(_parts(after))
    changes = [
        _change(path, _text(old, path), _text(new, path))
        for path in [*old, *(path for path in new if path not in old)]
        if _written_out(old, path) != _written_out(new, path)
    ]
    left = len(changes) - MAX_CHANGES
    more = [{"field": "…", "old": None, "new": f"{left} more"}] if left > 0 else []
    return [*changes[:MAX_CHANGES], *more]


def _parts(tool: OutsideTool) -> Iterator[tuple[str, Any]]:
    """Every value of a definition with its path, in the order in which it stands there."""
    waiting = [(name, getattr(tool, name)) for name in reversed(_FIELDS)]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        path, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += [(f"{path}{_step(key)}", one) for key, one in reversed(value.items())]
        elif isinstance(value, list) and value and not _is_flat(value):
            waiting += [(f"{path}[{at}]", one) for at, one in reversed(list(enumerate(value)))]
        elif (path, value) not in _USUAL:
            yield path, value
    yield "…", f"{len(waiting)} parts more"


def _step(key: str) -> str:
    """A key in a path; two different ways never make the same path, or one could hide another."""
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{msgspec.json.encode(key).decode()}]"


def _is_flat(value: list[Any]) -> bool:
    return not any(isinstance(one, dict | list) for one in value)


def _written_out(parts: dict[str, Any], path: str) -> bytes:
    """A value as JSON: 1, 1.0 and true are not the same there."""
    return msgspec.json.encode(parts[path]) if path in parts else b""


def _text(parts: dict[str, Any], path: str) -> str | None:
    if path not in parts:
        return None
    value = parts[path]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _change(path: str, old: str | None, new: str | None) -> dict[str, Any]:
    """Both sides from shortly before where they part, if that is too far on to be shown else."""
    at = 0
    if old is not None and new is not None and max(len(old), len(new)) > MAX_TEXT:
        pairs = enumerate(zip(old, new, strict=False))
        at = max(0, next((n for n, (a, b) in pairs if a != b), min(len(old), len(new))) - _BEFORE)
    return {"field": seen(path), "old": _told(old, at), "new": _told(new, at)}


def _told(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    return f"…{seen(text[start:])}" if start else seen(text)


def seen(text: str) -> str:
    """A text in which everything can be seen: what has no shape of its own is written out."""
    from remit.awareness.sanitise_unseen import unseen_spans  # noqa: PLC0415 - when there is one

    cut = text[:MAX_TEXT]
    if not (cut.isascii() and cut.isprintable()):
        unseen = {at for start, end, _, _ in unseen_spans(cut) for at in range(start, end)}
        cut = "".join(
            char if char == "\n" or (char.isprintable() and at not in unseen) else _written(char)
            for at, char in enumerate(cut)
        )
    return f"{cut}… ({len(text):,} characters)" if len(text) > MAX_TEXT else cut


def _written(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004
