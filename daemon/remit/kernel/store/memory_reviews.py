"""Reviews and blobs in memory."""

from itertools import dropwhile, islice

from remit.kernel.store.checks import check_state_key, check_text
from remit.kernel.store.memory_tables import MemoryTables
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


class MemoryReviews(MemoryTables):
    """See `ReviewStore` for what each method promises."""

    async def review_add(self, review: Review) -> Review:
        """Keep a review."""
        check_review(review)
        if review.id in self._reviews:
            raise review_exists(review.id)
        self._reviews[review.id] = review
        return review

    async def review_get(self, review: str) -> Review | None:
        """The review of that id, or None."""
        check_text(review, "$.id")
        return self._reviews.get(review)

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
        if after and after not in self._reviews:
            raise no_such_review(after)
        rest = iter(self._reviews.values())
        if after:
            rest = islice(dropwhile(lambda review: review.id != after, rest), 1, None)
        found = (
            review
            for review in rest
            if status in (None, review.status) and kind in (None, review.kind)
        )
        items, more = cut(found, limit, PAGE_BYTES, lambda review: len(review.payload))
        return ReviewPage(tuple(items), items[-1].id if more else None)

    async def review_decide(
        self, review: str, status: ReviewStatus, by: str, note: str, now: float
    ) -> Review:
        """Decide what is pending."""
        check_text(review, "$.id")
        check_decision(status, by, note, now)
        if review not in self._reviews:
            raise no_such_review(review)
        self._reviews[review] = decide(self._reviews[review], status, by, note, now)
        return self._reviews[review]


class MemoryBlobs(MemoryTables):
    """See `BlobStore` for what each method promises."""

    async def blob_put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, in the place of what was there."""
        check_blob(name, data)
        self._blobs[name] = data

    async def blob_get(self, name: str) -> bytes | None:
        """What was put under `name`, or None."""
        check_state_key(name)
        return self._blobs.get(name)
