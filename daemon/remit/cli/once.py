"""JSON in which every key stands once: of two values nobody knows which was meant."""

from typing import Any

from remit.errors import InvalidDataError


def refuse_duplicates(text: str | bytes, what: str) -> None:
    """Refuse JSON that was decoded before, if one of its objects has a key twice.

    Raises:
        InvalidDataError: it has; the path says in which object.
    """
    import json  # noqa: PLC0415 - it tells of every pair, where msgspec keeps the last one

    doubled: dict[int, str] = {}

    def watch(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            doubled[id(made)] = next(key for key in keys if keys.count(key) > 1)
        kept.append(made)
        return made

    kept: list[dict[str, Any]] = []  # alive, so that no id is used again
    found = json.loads(text, object_pairs_hook=watch)
    if not doubled:
        return
    path, key = next(_walk(found, "$", doubled))
    raise InvalidDataError(
        f"{key!r} is given twice at {path} of {what[:60]}",
        hint="keep one of them",
        details={"path": f"{path}.{key}"},
    )


def _walk(node: Any, path: str, doubled: dict[int, str]) -> Any:
    """The objects with a doubled key, outermost first: an inner one may have been overwritten."""
    if id(node) in doubled:
        yield path, doubled[id(node)]
    items = node.items() if isinstance(node, dict) else ()
    for key, value in items:
        yield from _walk(value, f"{path}.{key}", doubled)
    for at, value in enumerate(node if isinstance(node, list) else ()):
        yield from _walk(value, f"{path}[{at}]", doubled)
