"""Cutting a long list into pages, in the same way for every store."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from remit.errors import InvalidDataError
from remit.kernel.store.checks import check_text
from remit.kernel.store.protocol import PAGE_BYTES
from remit.kernel.store.records import StateEntry, StatePage
from remit.kernel.store.stored_json import shown_value

T = TypeVar("T")
StateRow = tuple[str, bytes, int, float, str]
"""Key, JSON, version, updated_at, updated_by: what is really kept of an entry."""


def to_entry(row: StateRow, *, most: int | None = None) -> StateEntry:
    """The entry as callers see it; of a value of over `most` bytes only the beginning."""
    key, data, version, updated_at, updated_by = row
    return StateEntry(key, shown_value(data, most=most), version, updated_at, updated_by)


def check_page(prefix: str, limit: int, after: str) -> None:
    """Refuse what cannot be asked for."""
    check_text(prefix, "$.prefix")
    check_text(after, "$.after")
    check_limit(limit)


def check_limit(limit: int) -> None:
    """Refuse a page without entries, or with more than anybody can count."""
    if not 0 < limit < 2**31:
        raise InvalidDataError(
            f"a page of {limit} entries cannot be made",
            hint="ask for at least one",
            details={"path": "$.limit"},
        )


def cut_page(rows: Iterable[StateRow], total: int, limit: int, max_bytes: int) -> StatePage:
    """Take a page from the front of `rows`, which must go on behind the page if the list does."""
    taken, more = cut(rows, limit, max_bytes, lambda row: len(row[1]))
    # A value that alone is too much for a page must not hide those behind it.
    items = tuple(to_entry(row, most=max(max_bytes, PAGE_BYTES)) for row in taken)
    return StatePage(items, total, next=taken[-1][0] if more else None)


def cut(
    rows: Iterable[T], limit: int, max_bytes: int, size: Callable[[T], int]
) -> tuple[list[T], bool]:
    """The first `limit` of `rows`, and whether there are more.

    They are fewer when they would outgrow `max_bytes`, but at least one if there is one.
    """
    taken: list[T] = []
    left = max_bytes
    for row in rows:
        left -= size(row)
        if taken and (len(taken) == limit or left < 0):
            return taken, True
        taken.append(row)
    return taken, False
