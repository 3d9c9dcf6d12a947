"""Who is given cards at all: a share of the sessions of each type, and when that is too many.

A session falls on the same side as long as the share stays, and raising the share takes nobody out.
"""

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b

import msgspec

DAY = 86_400.0
MIN_SESSIONS = 20
"""Fewer sessions in a day say nothing about a share."""
MAX_SESSIONS = 20_000
"""Sessions that are remembered; beyond that, the share is that of the latest."""
EVERY_TYPE = "*"


def session_key(principal: str, session: str) -> str:
    """What stands for a session: nobody reads its name out of it, and two callers share none."""
    return blake2b(f"{principal}\0{session}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def is_chosen(key: str, share: float) -> bool:
    """Tell whether a session belongs to a share of all; the larger share holds the smaller."""
    return int(key, 16) < share * 2**64


def share_of(shares: Mapping[str, float], session_type: str) -> float:
    """The share of sessions of a type; once types are listed, others get none unless `*` says."""
    if not shares:
        return 1.0
    return shares.get(session_type, shares.get(EVERY_TYPE, 0.0))


class Kept(msgspec.Struct, frozen=True):
    """A ledger as a restart needs it: keys with times, oldest first."""

    seen: tuple[tuple[str, float], ...] = ()
    injected: tuple[tuple[str, float], ...] = ()


class Ledger:
    """The sessions of the last day, and which of them were given cards."""

    def __init__(self, kept: Kept = Kept()) -> None:  # noqa: B008 - frozen
        self._seen: OrderedDict[str, float] = OrderedDict(kept.seen)
        self._injected: OrderedDict[str, float] = OrderedDict(kept.injected)

    def count(self, key: str, now: float, *, injected: bool) -> None:
        """Take in one turn of a session."""
        _put(self._seen, key, now)
        if injected:
            _put(self._injected, key, now)
        self._forget(now)

    def share(self, now: float) -> tuple[int, int]:
        """How many sessions were given cards, of how many, in the last day."""
        self._forget(now)
        return len(self._injected), len(self._seen)

    def is_over(self, limit: float, now: float, *, least: int = MIN_SESSIONS) -> bool:
        """Tell whether more than a share of enough sessions were given cards."""
        given, all_ = self.share(now)
        return all_ >= least and given > limit * all_

    def clear(self) -> None:
        """Begin to count anew."""
        self._seen.clear()
        self._injected.clear()

    def kept(self) -> Kept:
        """What a restart needs."""
        return Kept(tuple(self._seen.items()), tuple(self._injected.items()))

    def _forget(self, now: float) -> None:
        for book in (self._seen, self._injected):
            while book and (next(iter(book.values())) <= now - DAY or len(book) > MAX_SESSIONS):
                key, _ = book.popitem(last=False)
                if book is self._seen:
                    self._injected.pop(key, None)


def _put(book: "OrderedDict[str, float]", key: str, now: float) -> None:
    book[key] = now
    book.move_to_end(key)
