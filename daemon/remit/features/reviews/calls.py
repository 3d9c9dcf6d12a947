"""Calls that wait for an approval: how they are stored, listed, decided and answered."""

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from remit.errors import (
    ApprovalPendingError,
    DeniedError,
    ExceedsParentError,
    InvalidDataError,
    TooLargeError,
)
from remit.features.reviews.desk import (
    ReviewDecision,
    ReviewItems,
    ReviewKind,
    ReviewQuery,
    no_such_review,
)
from remit.features.reviews.store import ReviewRows
from remit.kernel.dispatch.context import Context
from remit.kernel.store.records import Review, ReviewStatus
from remit.kernel.store.rows import shown_object

if TYPE_CHECKING:
    from remit.kernel.dispatch.context import Demand

APPROVAL = "approval"
"""The kind of a call that waits."""
USE = "approval_use"
"""The kind of the mark that an approval is used up."""
LAPSE = "approval_lapse"
"""The kind of the mark that an approval has lapsed unused, and that this is in the audit."""
MAX_DATA_BYTES = 16 * 1024
_MOST_PAGES = 50


class CallGate(Protocol):
    """The gate at which calls wait; `Approvals` is one."""

    def now(self) -> float:
        """The time by which requests and decisions lapse."""

    def is_spent(self, review: Review) -> bool:
        """Tell whether a yes counts no more, as nobody has used it in time."""

    async def is_used(self, review: Review) -> bool:
        """Tell whether the call that was approved was made."""

    async def decide(self, review: str, status: ReviewStatus, by: str, note: str) -> Review:
        """Decide a request."""


class CallReviews:
    """The kind of reviews that are calls; it lists them, and decides at their gate."""

    def __init__(self, gate: CallGate) -> None:
        self._gate = gate

    @property
    def kind(self) -> ReviewKind:
        """What the desk knows of them."""
        return ReviewKind(name=APPROVAL, listed=self.listed, decide=self.decide, is_paged=True)

    async def listed(self, ctx: Context, query: ReviewQuery) -> ReviewItems:
        """A page of the calls that wait, or were decided."""
        store, after, status = ReviewRows(ctx.kernel.database), query.after, query.status
        if after:
            await _call_in_sight(ctx, after)
        stored = None if status == "expired" else status  # what nobody used lapses as well
        shown: list[dict[str, Any]] = []
        for _ in range(_MOST_PAGES):
            page = await store.review_list(
                status=stored, kind=APPROVAL, limit=query.limit - len(shown), after=after
            )
            seen = [one for one in page.items if _may_see(ctx, one)]
            shown += [_described(one, status) for one in seen if await self._now(one) == status]
            if page.next is None or len(shown) >= query.limit:
                return ReviewItems(shown, next=page.next)
            after = page.next
        return ReviewItems(shown, next=after)

    async def decide(self, ctx: Context, id_: str, decision: ReviewDecision) -> dict[str, Any]:
        """Let a call through, or refuse it."""
        decision.refuse_effect()
        review = await _call_in_sight(ctx, id_)
        if not ctx.principal.is_operator and decision.status == "approved":
            _check_approver(ctx, review)
        by = ctx.principal.id
        decided = await self._gate.decide(id_, decision.status, by, decision.note)
        return _described(decided, decided.status)

    async def _now(self, review: Review) -> ReviewStatus:
        """What has become of a request by now, whether or not it was written down yet."""
        gate = self._gate
        if review.status == "pending":
            is_over = review.expires_at is not None and review.expires_at <= gate.now()
            return "expired" if is_over else "pending"
        if gate.is_spent(review) and not await gate.is_used(review):
            return "expired"
        return review.status


def payload(demand: "Demand", digest: str) -> bytes:
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


def _described(review: Review, status: ReviewStatus) -> dict[str, Any]:
    body = shown_object(review.payload)
    return {
        "id": review.id,
        "kind": APPROVAL,
        "status": "lapsed" if status == "expired" else status,
        "event": review.subject,
        "data": body.get("data", body),
        "session": body.get("session", ""),
        "requested_by": review.requested_by,
        "requested_at": review.requested_at,
        "expires_at": review.expires_at,
        "decided_by": review.decided_by,
        "decided_at": review.decided_at,
        "note": review.note,
    }


async def _call_in_sight(ctx: Context, name: str) -> Review:
    """A request that the caller may see.

    Raises:
        NotFoundError: there is none of that id, or it is not for the caller.
    """
    review = await ReviewRows(ctx.kernel.database).review_get(name)
    if review is None or review.kind != APPROVAL or not _may_see(ctx, review):
        raise no_such_review(name)
    return review


def _may_see(ctx: Context, review: Review) -> bool:
    if ctx.principal.is_operator:
        return True
    return review.subject in ctx.grant.events and _is_within(ctx, review)


def _is_within(ctx: Context, review: Review) -> bool:
    """Who could not touch a key of the state itself neither reads nor decides about it."""
    if ctx.grant.limits.state_prefixes is None or not review.subject.startswith("state:"):
        return True
    data = shown_object(review.payload).get("data")
    key = data.get("key", data.get("prefix", "")) if isinstance(data, dict) else None
    return isinstance(key, str) and ctx.grant.limits.allow_key(key)


def _check_approver(ctx: Context, review: Review) -> None:
    """Refuse who must not approve.

    INVARIANT: no agent approves for itself, its ancestors or its own agents, nor what it may not do
    freely itself: two that are bound would free each other.
    """
    me, fleet = ctx.principal.id, ctx.kernel.authority.fleet
    asked = review.requested_by
    if fleet.is_under(asked, me) or fleet.is_under(me, asked):
        raise DeniedError("nobody approves a request of their own", reason="explicit_deny")
    if review.subject in ctx.grant.approval_required:
        raise ExceedsParentError(
            f"you may not approve {review.subject!r}: you need an approval for it yourself",
            details={"excess": [review.subject]},
        )
