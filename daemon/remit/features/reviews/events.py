"""review:* — what waits for somebody's yes: calls, capabilities in profiles, cards, tools."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import msgspec

from remit.config.settings.table import Settings
from remit.features.reviews.approvals import Approvals
from remit.features.reviews.calls import CallReviews
from remit.features.reviews.capabilities import (
    CAPABILITY_REVIEWS,
    CapabilityReviews,
    load_decisions,
)
from remit.features.reviews.desk import ReviewDecision, ReviewDesk, ReviewQuery
from remit.features.reviews.store import ReviewRows
from remit.kernel.authority.standing import Decisions, approvals_in
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.feature import Setup, Startup
from remit.kernel.store.records import ReviewStatus
from remit.model.limits import Effect
from remit.model.schema import Key

Limit = Annotated[int, msgspec.Meta(ge=1, le=200)]
Note = Annotated[str, msgspec.Meta(max_length=1000)]
Status = Literal["pending", "approved", "rejected", "lapsed", "expired"]

_DECIDED: dict[str, ReviewStatus] = {"approve": "approved", "reject": "rejected"}


@event_handler("review:list", capability="reviewing", effect="read", wildcard=False)
async def list_(  # noqa: PLR0913, PLR0917 - what a request may say
    ctx: Context,
    desk: ReviewDesk,
    status: Status = "pending",
    kind: Literal["approval", "capability", "card", "lesson", "tool"] | None = None,
    effect: Effect | None = None,
    limit: Limit = 50,
    after: Key = "",
) -> dict[str, Any]:
    """List calls that wait for approval, and capabilities, cards and tools that need a review.

    Args:
        status: those that wait, those that were decided, or calls whose request or approval has
            lapsed; expired is the old name of lapsed.
        kind: only calls (approval), only capabilities, only cards, or only upstream tools; lessons
            of discovery are listed when they are asked for by this alone.
        effect: only upstream tools that do this.
        limit: how many calls at the most.
        after: the `next` of the page before.
    """
    asked: ReviewStatus = "expired" if status == "lapsed" else status
    query = ReviewQuery(status=asked, effect=effect, limit=limit, after=after)
    found = await desk.listed(ctx, query, kind)
    total = len(found.items)
    return {"items": found.items, "total": total, "left_out": found.left_out, "next": found.next}


@event_handler("review:decide", capability="reviewing", wildcard=False)
async def decide(
    ctx: Context,
    desk: ReviewDesk,
    id: Key,  # noqa: A002 - the name on the wire
    decision: Literal["approve", "reject"],
    note: Note = "",
    effect: Effect | None = None,
) -> dict[str, Any]:
    """Approve or reject a call that waits, a capability, a card, a lesson, or an upstream tool.

    Args:
        id: what `review:list` shows: of a call, 'profile/capability', 'agent:name/capability',
            'card:id', 'lesson:id', or 'tool:server/tool', to which '@' and a fingerprint may be
            added; 'tool:server/*' is all that waits there, was shown and is not suspicious.
        decision: approve or reject; rejecting what is no call takes an approval back.
        note: why; the one who asked is told.
        effect: with 'tool:server/*' only those tools that do this.
    """
    return await desk.decide(ctx, id, ReviewDecision(_DECIDED[decision], note, effect))


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


class StoredDecisions(msgspec.Struct, frozen=True):
    """What was decided about capabilities in earlier runs."""

    decisions: Decisions = {}


async def _restore(startup: Startup) -> None:
    decisions = await load_decisions(ReviewRows(startup.database))
    startup.put(StoredDecisions(decisions))
    startup.approvals = approvals_in(decisions)


def _build(kernel: Kernel, startup: Startup) -> None:
    approvals = Approvals(
        ReviewRows(kernel.database),
        kernel.audit_log,
        kernel.authority.fleet,
        kernel.delivery.show_holders,
        clock=kernel.lapsing_clock,
        timeout=startup.settings.approval_timeout,
        wait=startup.settings.approval_wait,
    )
    kernel.gate = approvals
    reviews = CapabilityReviews(
        ReviewRows(kernel.database),
        kernel.authority,
        kernel.delivery,
        kernel.reloader,
        startup.take(StoredDecisions, StoredDecisions).decisions,
        clock=kernel.wall_clock,
    )
    desk = ReviewDesk()
    desk.register(CallReviews(approvals).kind)
    desk.register(CAPABILITY_REVIEWS)
    kernel.provide(approvals, reviews, desk)


async def _load(kernel: Kernel) -> None:
    await kernel.service(Approvals).load()


@asynccontextmanager
async def _run(kernel: Kernel, _settings: Settings) -> AsyncGenerator[None]:
    async with kernel.service(Approvals).lapsing():
        yield


SETUP = Setup(restore=_restore, build=_build, load=_load, run=_run)
