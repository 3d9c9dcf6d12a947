"""review:* — what waits for somebody's yes: calls, capabilities in profiles, cards, tools."""

from typing import Annotated, Any, Literal

import msgspec

from remit.errors import DeniedError, ExceedsParentError, InvalidDataError, NotFoundError
from remit.features.cards.events import decide_review, listed_reviews
from remit.features.reviews import capability_events as review_capabilities
from remit.features.reviews.approvals import Approvals
from remit.kernel.authority.approvals import APPROVAL, CAPABILITY, CARD, Pair, card_in
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.store.records import Review, ReviewStatus
from remit.kernel.store.stored_json import shown_object
from remit.model.event import Effect
from remit.model.requests import Key

Limit = Annotated[int, msgspec.Meta(ge=1, le=200)]
Note = Annotated[str, msgspec.Meta(max_length=1000)]
Status = Literal["pending", "approved", "rejected", "lapsed", "expired"]

_MOST_PAGES = 50
TOOL = "tool"
_KINDS = frozenset({APPROVAL, CAPABILITY, CARD, TOOL})
_DECIDED: dict[str, ReviewStatus] = {"approve": "approved", "reject": "rejected"}


@event_handler("review:list", capability="reviewing", effect="read", wildcard=False)
async def list_(
    ctx: Context,
    status: Status = "pending",
    kind: Literal["approval", "capability", "card", "tool"] | None = None,
    effect: Effect | None = None,
    limit: Limit = 50,
    after: Key = "",
) -> dict[str, Any]:
    """List calls that wait for approval, and capabilities, cards and tools that need a review.

    Args:
        status: those that wait, those that were decided, or calls whose request or approval has
            lapsed; expired is the old name of lapsed.
        kind: only calls (approval), only capabilities, only cards, or only upstream tools.
        effect: only upstream tools that do this.
        limit: how many calls at the most.
        after: the `next` of the page before.
    """
    items: list[dict[str, Any]] = []
    left_out = 0
    kinds = _KINDS if kind is None else {kind}
    kinds = kinds if effect is None else kinds & {TOOL}
    decided: ReviewStatus = "expired" if status == "lapsed" else status
    if CAPABILITY in kinds and not after:
        items += review_capabilities.listed(ctx, decided)
    if CARD in kinds and not after:
        items += await listed_reviews(ctx, decided)
    if TOOL in kinds and not after:
        from remit.features.upstreams import reviews as review_tools  # noqa: PLC0415 - with the daemon only

        tools, left_out = review_tools.listed(ctx, decided, effect)
        items += tools
    cursor = None
    if APPROVAL in kinds:
        found, cursor = await _calls(ctx, decided, limit, after)
        items += found
    return {"items": items, "total": len(items), "left_out": left_out, "next": cursor}


async def _calls(
    ctx: Context, status: ReviewStatus, limit: int, after: str
) -> tuple[list[dict[str, Any]], str | None]:
    store = ctx.kernel.store
    if after:
        await _call_in_sight(ctx, after)
    stored = None if status == "expired" else status  # approvals that nobody used lapse as well
    shown: list[dict[str, Any]] = []
    for _ in range(_MOST_PAGES):
        page = await store.review_list(
            status=stored, kind=APPROVAL, limit=limit - len(shown), after=after
        )
        seen = [one for one in page.items if _may_see_call(ctx, one)]
        shown += [_call(one, status) for one in seen if await _status(ctx, one) == status]
        if page.next is None or len(shown) >= limit:
            return shown, page.next
        after = page.next
    return shown, after


async def _status(ctx: Context, review: Review) -> ReviewStatus:
    """What has become of a request by now, whether or not it was written down yet."""
    approvals = ctx.kernel.service(Approvals)
    if review.status == "pending":
        is_over = review.expires_at is not None and review.expires_at <= approvals.now()
        return "expired" if is_over else "pending"
    if approvals.is_spent(review) and not await approvals.is_used(review):
        return "expired"
    return review.status


def _call(review: Review, status: ReviewStatus) -> dict[str, Any]:
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
    review = await ctx.kernel.store.review_get(name)
    if review is None or review.kind != APPROVAL or not _may_see_call(ctx, review):
        raise NotFoundError(f"there is no review {name!r}", hint="'remit review list' shows them")
    return review


def _may_see_call(ctx: Context, review: Review) -> bool:
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


@event_handler("review:decide", capability="reviewing", wildcard=False)
async def decide(
    ctx: Context,
    id: Key,  # noqa: A002 - the name on the wire
    decision: Literal["approve", "reject"],
    note: Note = "",
    effect: Effect | None = None,
) -> dict[str, Any]:
    """Approve or reject a call that waits, a capability, a card, or an upstream tool.

    Args:
        id: what `review:list` shows: of a call, 'profile/capability', 'agent:name/capability',
            'card:id', or 'tool:server/tool', to which '@' and a fingerprint may be added;
            'tool:server/*' is all that waits there, was shown and is not suspicious.
        decision: approve or reject; rejecting what is no call takes an approval back.
        note: why; the one who asked is told.
        effect: with 'tool:server/*' only those tools that do this.
    """
    card = card_in(id)
    if card is not None:
        return await decide_review(ctx, card, _DECIDED[decision], note)
    if id.startswith(f"{TOOL}:"):
        from remit.features.upstreams import reviews as review_tools  # noqa: PLC0415 - the same

        tool = id.partition(":")[2]
        return await review_tools.decide(ctx, tool, _DECIDED[decision], note, effect)
    if effect is not None:
        raise InvalidDataError("an effect is named for upstream tools alone", hint="leave it out")
    pair = Pair.parse(id)
    if pair is not None:
        return await review_capabilities.decide(ctx, pair, _DECIDED[decision], note)
    return await _decide_call(ctx, id, _DECIDED[decision], note)


async def _decide_call(ctx: Context, name: str, status: ReviewStatus, note: str) -> dict[str, Any]:
    review = await _call_in_sight(ctx, name)
    if not ctx.principal.is_operator and status == "approved":
        _check_approver(ctx, review)
    decided = await ctx.kernel.service(Approvals).decide(name, status, ctx.principal.id, note)
    return _call(decided, decided.status)


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


@event_handler(
    "review:requested", capability="reviewing", effect="read", wildcard=False, pushed=True
)
def requested(
    id: str,  # noqa: A002 - as in review:decide
    event: str,
    requested_by: str,
    expires_at: float,
    session: str,
) -> None:
    """A call waits for approval.

    Args:
        id: what to approve or reject.
        event: what was called.
        requested_by: by whom.
        expires_at: when it lapses.
        session: the session that the call works in; empty when it names none.
    """
