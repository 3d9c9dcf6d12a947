"""Lists in pages: `{items, total, next}`."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

PAGE_LIMIT = 100
PAGE_MAX = 1000
BODY_BYTES = 512 * 1024
"""A message may have 1 MiB; one that cannot be sent tells nothing."""


def page(
    names: Sequence[str], describe: Callable[[str], Any], *, limit: int, after: str
) -> dict[str, Any]:
    """One page of sorted names, each described; `next` is the cursor to go on with."""
    remaining = [name for name in names if name > after]
    shown = remaining[:limit]
    more = len(remaining) > limit
    return {
        "items": [describe(name) for name in shown],
        "total": len(names),
        "next": shown[-1] if more else None,
    }


def bounded(body: dict[str, Any], *largest: str) -> dict[str, Any]:
    """The body, without its largest parts, one after the other, until it fits into a message."""
    for part in largest:
        if len(msgspec.json.encode(body)) <= BODY_BYTES:
            return body
        body = body | {part: type(body[part])(), "truncated": True}
    return body
