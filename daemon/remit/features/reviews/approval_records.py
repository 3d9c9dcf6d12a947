"""Approvals as they are stored and answered: what a review shows, and how a call is refused."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from remit.errors import (
    ApprovalPendingError,
    DeniedError,
    InvalidDataError,
    TooLargeError,
)
from remit.kernel.dispatch.kernel import Demand
from remit.kernel.store.protocol import ReviewStore
from remit.kernel.store.records import Review
from remit.kernel.store.stored_json import shown_object

USE = "approval_use"
"""The kind of the mark that an approval is used up."""
LAPSE = "approval_lapse"
"""The kind of the mark that an approval has lapsed unused, and that this is in the audit."""
MAX_DATA_BYTES = 16 * 1024


async def stored_reviews(
    store: ReviewStore, kind: str, status: Any = None
) -> AsyncIterator[Review]:
    """All reviews of a kind, oldest first."""
    after = ""
    while True:
        page = await store.review_list(kind=kind, status=status, after=after)
        for review in page.items:
            yield review
        if page.next is None:
            return
        after = page.next


def payload(demand: Demand, digest: str) -> bytes:
    """What is stored of a request, and shown to those who decide.

    Raises:
        InvalidDataError: the data cannot be shown.
        TooLargeError: nobody would read them.
    """
    event = demand.event
    try:
        shown = msgspec.json.encode(demand.data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise unreadable() from error
    if len(shown) > MAX_DATA_BYTES:
        raise TooLargeError(
            f"{event!r} waits for approval, and nobody can approve {len(shown):,} bytes of data",
            hint=f"send {MAX_DATA_BYTES:,} bytes at the most",
            details={"limit": MAX_DATA_BYTES, "size": len(shown)},
        )
    return msgspec.json.encode(
        {
            "event": event,
            "data": msgspec.Raw(shown),
            "session": demand.session.name,
            "decision": demand.decision,
            "revision": demand.revision,
            "digest": digest,
        }
    )


def unreadable() -> InvalidDataError:
    """The answer to data that have no form in JSON."""
    return InvalidDataError(
        "these data cannot be shown to the one who would approve them", details={"path": "$"}
    )


def digest_in(review: Review) -> str:
    """The digest of the call that was asked for; empty when it cannot be read."""
    return str(shown_object(review.payload).get("digest", ""))


def lapse_of(review: str) -> str:
    """The id of the mark that an approval lapsed unused."""
    return f"{review}-lapse"


def use_of(review: str) -> str:
    """The id of the mark that an approval is used up."""
    return f"{review}-use"


def _details(review: Review) -> dict[str, Any]:
    return {"review": review.id, "event": review.subject}


def pending(review: Review) -> ApprovalPendingError:
    """The answer to a call that waits."""
    return ApprovalPendingError(
        f"{review.subject!r} waits for approval as {review.id}",
        hint="repeat the same call later: it runs once it is approved",
        details=_details(review) | {"expires_at": review.expires_at},
    )


def rejected(review: Review) -> DeniedError:
    """The answer to a call that somebody said no to."""
    why = f": {review.note}" if review.note else ""
    error = DeniedError(
        f"this call of {review.subject!r} was rejected{why}", reason="explicit_deny"
    )
    error.details |= _details(review) | {"note": review.note}
    return error


def lapsed(review: Review) -> DeniedError:
    """The answer to a call that nobody decided about in time."""
    error = DeniedError(
        f"nobody approved this call of {review.subject!r} in time",
        reason="explicit_deny",
        hint="repeat the call to ask again",
    )
    error.details |= _details(review) | {"note": "timed out"}
    return error
