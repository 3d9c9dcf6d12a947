"""Reviews and blobs in SQLite."""

import sqlite3
from typing import get_args

import msgspec

from remit.errors import ConflictError, InvalidDataError, NotFoundError
from remit.kernel.store.records import Review, ReviewStatus
from remit.kernel.store.rows import (
    PAGE_BYTES,
    PAGE_LIMIT,
    Rows,
    check_json,
    check_limit,
    check_text,
    check_time,
    cut,
)

Connection = sqlite3.Connection

_COLUMNS = """
id, kind, subject, requested_by, requested_at, expires_at, payload,
status, decided_by, decided_at, note
"""
_INSERT = f"INSERT INTO review ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - the columns are ours
_GET = f"SELECT {_COLUMNS} FROM review WHERE id = ?"  # noqa: S608 - the columns are ours
_PAGE = f"""
SELECT {_COLUMNS} FROM review
WHERE position > :first AND (:status IS NULL OR status = :status)
    AND (:kind IS NULL OR kind = :kind)
ORDER BY position LIMIT :limit
"""  # noqa: S608 - the columns are ours
_DECIDE = """
UPDATE review SET status = ?, decided_by = ?, decided_at = ?, note = ? WHERE id = ?
"""


class ReviewPage(msgspec.Struct, frozen=True):
    """Some reviews, oldest first; `next` is the cursor to go on with, or None at the end."""

    items: tuple[Review, ...]
    next: str | None = None


class ReviewRows(Rows):
    """What waits for a person, and what they decided. Nothing is ever decided twice."""

    async def review_add(self, review: Review) -> Review:
        """Keep a review.

        Raises:
            ConflictError: there is one with that id.
            InvalidDataError: the payload is not JSON, or the status is none.
        """
        _check_review(review)

        def write(connection: Connection) -> Review:
            if _get(connection, review.id) is not None:
                raise _review_exists(review.id)
            connection.execute(_INSERT, _row(review))
            return review

        return await self.database.write(write)

    async def review_get(self, review: str) -> Review | None:
        """The review of that id, or None."""
        check_text(review, "$.id")
        return await self.database.read(lambda connection: _get(connection, review))

    async def review_list(
        self,
        *,
        status: ReviewStatus | None = None,
        kind: str | None = None,
        limit: int = PAGE_LIMIT,
        after: str = "",
    ) -> ReviewPage:
        """Reviews, oldest first, from behind the one with id `after`.

        Raises:
            NotFoundError: there is no review `after`.
        """
        check_limit(limit)
        check_text(after, "$.after")
        check_text(kind or "", "$.kind")
        if status is not None:
            _check_status(status)

        def read(connection: Connection) -> ReviewPage:
            first = _position(connection, after) if after else 0
            where = {"first": first, "status": status, "kind": kind, "limit": limit + 1}
            found = (Review(*row) for row in connection.execute(_PAGE, where))
            items, more = cut(found, limit, PAGE_BYTES, lambda review: len(review.payload))
            return ReviewPage(tuple(items), items[-1].id if more else None)

        return await self.database.read(read)

    async def review_decide(
        self, review: str, status: ReviewStatus, by: str, note: str, now: float
    ) -> Review:
        """Decide what is pending.

        Raises:
            ConflictError: it is not pending any more, or too late to approve it.
            NotFoundError: there is none with that id.
        """
        check_text(review, "$.id")
        _check_decision(status, by, note, now)

        def write(connection: Connection) -> Review:
            found = _get(connection, review)
            if found is None:
                raise _no_such_review(review)
            decided = _decide(found, status, by, note, now)
            connection.execute(_DECIDE, (status, by, now, note, review))
            return decided

        return await self.database.write(write)


def _get(connection: Connection, review: str) -> Review | None:
    row = connection.execute(_GET, (review,)).fetchone()
    return None if row is None else Review(*row)


def _position(connection: Connection, review: str) -> int:
    row = connection.execute("SELECT position FROM review WHERE id = ?", (review,)).fetchone()
    if row is None:
        raise _no_such_review(review)
    return int(row[0])


def _row(review: Review) -> tuple[object, ...]:
    return tuple(getattr(review, field) for field in Review.__struct_fields__)


def _check_review(review: Review) -> None:
    """Refuse a review that could not be kept, shown or decided."""
    for field in ("id", "kind", "subject", "requested_by", "decided_by", "note"):
        check_text(getattr(review, field), f"$.{field}")
    if not review.id:
        raise InvalidDataError("a review needs an id", details={"path": "$.id"})
    _check_status(review.status)
    check_time(review.requested_at, "$.requested_at")
    check_time(review.expires_at or 0.0, "$.expires_at")
    check_time(review.decided_at or 0.0, "$.decided_at")
    check_json(review.payload, "$.payload")


def _check_decision(status: str, by: str, note: str, now: float) -> None:
    """Refuse what is no decision."""
    _check_status(status)
    if status == "pending":
        raise InvalidDataError(
            "'pending' is no decision", hint="approve or reject it", details={"path": "$.status"}
        )
    check_text(by, "$.by")
    check_text(note, "$.note")
    check_time(now, "$.now")


def _check_status(status: str) -> None:
    """Refuse a status that no review can have."""
    known = get_args(ReviewStatus)
    if status not in known:
        raise InvalidDataError(
            f"{status!a} is not the status of a review",
            hint=f"write one of {', '.join(known)}",
            details={"path": "$.status"},
        )


def _decide(review: Review, status: ReviewStatus, by: str, note: str, now: float) -> Review:
    """The review as it is after the decision.

    Raises:
        ConflictError: it was decided before, or its time is over and it would be approved.
    """
    too_late = review.expires_at is not None and review.expires_at <= now
    if review.status != "pending":
        problem, found = f"was {review.status} before", review.status
    elif status == "approved" and too_late:
        problem, found = "has expired", "expired"
    else:
        return msgspec.structs.replace(
            review, status=status, decided_by=by, decided_at=now, note=note
        )
    raise ConflictError(
        f"review {review.id!r} {problem}",
        hint="repeat the request to get a new review",
        details={"id": review.id, "status": found},
    )


def _review_exists(review: str) -> ConflictError:
    """The refusal of a second review under one id."""
    return ConflictError(
        f"there is a review {review!r} already",
        hint="ask under a new id",
        details={"id": review},
    )


def _no_such_review(review: str) -> NotFoundError:
    """The answer to deciding what was never asked."""
    return NotFoundError(
        f"there is no review {review!r}",
        hint="'remit review list' shows them",
        details={"id": review},
    )
