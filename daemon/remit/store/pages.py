"""Cutting a long list into pages, in the same way for every store."""

from collections.abc import Iterable

import msgspec

from remit.errors import InvalidDataError
from remit.store.checks import check_text
from remit.store.records import StateEntry, StatePage

StateRow = tuple[str, bytes, int, float, str]
"""Key, JSON, version, updated_at, updated_by: what is really kept of an entry."""


def to_entry(row: StateRow) -> StateEntry:
    """The entry as callers see it."""
    key, data, version, updated_at, updated_by = row
    return StateEntry(key, msgspec.json.decode(data), version, updated_at, updated_by)


def check_page(prefix: str, limit: int, after: str) -> None:
    """Refuse what cannot be asked for."""
    check_text(prefix, "$.prefix")
    check_text(after, "$.after")
    if not 0 < limit < 2**31:
        raise InvalidDataError(
            f"a page of {limit} entries cannot be made",
            hint="ask for at least one",
            details={"path": "$.limit"},
        )


def cut_page(rows: Iterable[StateRow], total: int, limit: int, max_bytes: int) -> StatePage:
    """Take a page from the front of `rows`, which must go on behind the page if the list does."""
    items: list[StateEntry] = []
    left = max_bytes
    for row in rows:
        left -= len(row[1])
        if items and (len(items) == limit or left < 0):
            return StatePage(tuple(items), total, next=items[-1].key)
        items.append(to_entry(row))
    return StatePage(tuple(items), total)
