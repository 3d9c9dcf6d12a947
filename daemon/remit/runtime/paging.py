"""Lists in pages: `{items, total, next}`."""

from collections.abc import Callable, Sequence
from typing import Any

PAGE_LIMIT = 100
PAGE_MAX = 1000


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
