"""Reviews and blobs in SQLite."""

import sqlite3

from remit.kernel.store.checks import check_state_key, check_text
from remit.kernel.store.database import Database
from remit.kernel.store.pages import check_limit, cut
from remit.kernel.store.protocol import PAGE_BYTES, PAGE_LIMIT
from remit.kernel.store.records import Review, ReviewPage, ReviewStatus
from remit.kernel.store.row_checks import (
    check_blob,
    check_decision,
    check_review,
    check_status,
    decide,
    no_such_review,
    review_exists,
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
_PUT = """
INSERT INTO blob (name, data) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data
"""


class SqliteReviews(Database):
    """See `ReviewStore` for what each method promises."""

    async def review_add(self, review: Review) -> Review:
        """Keep a review."""
        check_review(review)

        def write(connection: Connection) -> Review:
            if _get(connection, review.id) is not None:
                raise review_exists(review.id)
            connection.execute(_INSERT, _row(review))
            return review

        return await self.write(write)

    async def review_get(self, review: str) -> Review | None:
        """The review of that id, or None."""
        check_text(review, "$.id")
        return await self.read(lambda connection: _get(connection, review))

    async def review_list(
        self,
        *,
        status: ReviewStatus | None = None,
        kind: str | None = None,
        limit: int = PAGE_LIMIT,
        after: str = "",
    ) -> ReviewPage:
        """Reviews, oldest first, from behind the one with id `after`."""
        check_limit(limit)
        check_text(after, "$.after")
        check_text(kind or "", "$.kind")
        if status is not None:
            check_status(status)

        def read(connection: Connection) -> ReviewPage:
            first = _position(connection, after) if after else 0
            where = {"first": first, "status": status, "kind": kind, "limit": limit + 1}
            found = (Review(*row) for row in connection.execute(_PAGE, where))
            items, more = cut(found, limit, PAGE_BYTES, lambda review: len(review.payload))
            return ReviewPage(tuple(items), items[-1].id if more else None)

        return await self.read(read)

    async def review_decide(
        self, review: str, status: ReviewStatus, by: str, note: str, now: float
    ) -> Review:
        """Decide what is pending."""
        check_text(review, "$.id")
        check_decision(status, by, note, now)

        def write(connection: Connection) -> Review:
            found = _get(connection, review)
            if found is None:
                raise no_such_review(review)
            decided = decide(found, status, by, note, now)
            connection.execute(_DECIDE, (status, by, now, note, review))
            return decided

        return await self.write(write)


class SqliteBlobs(Database):
    """See `BlobStore` for what each method promises."""

    async def blob_put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, in the place of what was there."""
        check_blob(name, data)
        await self.write(lambda connection: connection.execute(_PUT, (name, data)).close())

    async def blob_get(self, name: str) -> bytes | None:
        """What was put under `name`, or None."""
        check_state_key(name)
        query = "SELECT data FROM blob WHERE name = ?"
        row = await self.read(lambda connection: connection.execute(query, (name,)).fetchone())
        return None if row is None else bytes(row[0])


def _get(connection: Connection, review: str) -> Review | None:
    row = connection.execute(_GET, (review,)).fetchone()
    return None if row is None else Review(*row)


def _position(connection: Connection, review: str) -> int:
    row = connection.execute("SELECT position FROM review WHERE id = ?", (review,)).fetchone()
    if row is None:
        raise no_such_review(review)
    return int(row[0])


def _row(review: Review) -> tuple[object, ...]:
    return tuple(getattr(review, field) for field in Review.__struct_fields__)
