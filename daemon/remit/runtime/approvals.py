"""The approval gate: calls that wait, with their exact arguments, for somebody's yes.

A yes is bound to who asked, to the event and to every argument. It counts once, and not for ever.
What nobody decides in time is refused. Requests and decisions are in the store, so a restart
between the two loses neither; what was used is in the store before the call runs.
"""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Any, Protocol

import anyio
import msgspec
import structlog

from remit.errors import (
    ApprovalPendingError,
    ConflictError,
    DeniedError,
    InvalidDataError,
    LimitError,
    RemitError,
    TooLargeError,
)
from remit.runtime.auditor import Auditor
from remit.runtime.fleet import Fleet
from remit.runtime.pairs import APPROVAL
from remit.runtime.summary import summary
from remit.store.protocol import ReviewStore
from remit.store.records import Review, ReviewStatus

log = structlog.get_logger()

USE = "approval_use"
REQUESTED_EVENT = "review:requested"
MAX_DATA_BYTES = 16 * 1024
MAX_PENDING = 20
"""Requests of one agent that may wait at the same time: an operator reads them all."""
MAX_WAITING = 4
"""Calls of one agent that may wait at the same time: each holds a place in the daemon."""
MAX_WAITING_IN_ALL = 64


class Demand(msgspec.Struct, frozen=True):
    """A call that needs an approval."""

    principal: str
    event: str
    data: Any
    decision: str
    revision: int


class Show(Protocol):
    """How those who watch are told."""

    def __call__(self, event: str, data: Any, origin: str, *, of: str) -> int:
        """Tell everybody who asked for an event and may use the event `of`."""


class Approvals:
    """Lets a call through when exactly it was approved."""

    def __init__(  # noqa: PLR0913 - one argument a part
        self,
        store: ReviewStore,
        auditor: Auditor,
        fleet: Fleet,
        show: Show,
        *,
        clock: Callable[[], float],
        timeout: float = 300.0,
        wait: float = 20.0,
    ) -> None:
        """Open the gate.

        Args:
            store: where requests and decisions are kept.
            auditor: is told about each request.
            fleet: the living agents.
            show: tells those who watch about a request, if they may use the event themselves.
            clock: the wall clock, which must not go back while this runs.
            timeout: seconds until a request lapses, and until a decision does.
            wait: seconds that a call waits for its decision.
        """
        self._store = store
        self._auditor = auditor
        self._fleet = fleet
        self._show = show
        self._clock = clock
        self._timeout = timeout
        self._wait = wait
        self._live: dict[str, Review] = {}
        """The newest request for each call, as long as it or its decision counts."""
        self._bells: dict[str, anyio.Event] = {}
        self._waiting: Counter[str] = Counter()
        self._asking = anyio.Lock()

    async def load(self) -> None:
        """Take over what waits, and what was decided but not used yet."""
        for status in ("pending", "approved", "rejected"):
            async for review in stored_reviews(self._store, APPROVAL, status):
                if self._is_over(review):
                    if status == "pending":
                        await self._expire(review)
                    continue
                used = await self._store.review_get(_use_of(review.id))
                if used is None:
                    self._live[_digest_in(review)] = review

    def _is_over(self, review: Review) -> bool:
        """Tell whether nobody can still wait for it or use it, as far as a new daemon can tell.

        What comes from the future was written before the clock was set back. It would count longer
        than it was given, and nobody knows how long it has counted.
        """
        now = self._clock()
        if max(review.requested_at, review.decided_at or 0.0) > now:
            return True
        return self._lapses_at(review) + self._timeout <= now

    def now(self) -> float:
        """The time by which requests and decisions lapse."""
        return self._clock()

    async def clear(self, demand: Demand, *, budget: float) -> str:
        """Wait until this call is approved; answers the id of the approval, which is used up.

        Raises:
            DeniedError: it was rejected, or nobody approved it in time.
            ApprovalPendingError: it still waits; the same call finds it again.
            LimitError: too many requests of this caller wait already.
        """
        digest = self._digest(demand)
        until = anyio.current_time() + min(self._wait, self._timeout, budget)
        while True:
            review = await self._find_or_ask(demand, digest)
            if review.status == "rejected":
                raise _rejected(review)
            if review.status == "approved":
                if self._live.get(digest) is not review:
                    continue  # another call with the same arguments has used it up
                # INVARIANT: nothing is awaited between the look and the removal.
                del self._live[digest]
                await self._use(review, demand.decision)
                if self._digest(demand) != digest:
                    raise DeniedError(f"{demand.principal!r} was revoked", reason="revoked")
                return review.id
            if not await self._hear(review, demand.principal, until):
                raise _pending(review)

    async def decide(self, review: str, status: ReviewStatus, by: str, note: str) -> Review:
        """Decide a request.

        Raises:
            ConflictError: it was decided before, or has lapsed.
            NotFoundError: there is none with that id.
        """
        with anyio.CancelScope(shield=True):
            # A decision that is stored but not known here would be heard of only after a restart.
            decided = await self._store.review_decide(review, status, by, note, self._clock())
        digest = _digest_in(decided)
        if self._live.get(digest, decided).id == decided.id:
            self._live[digest] = decided
        self._ring(decided.id)
        return decided

    async def _find_or_ask(self, demand: Demand, digest: str) -> Review:
        async with self._asking:
            found = self._live.get(digest)
            if found is None:
                return await self._ask(demand, digest)
            late = self._clock() - self._lapses_at(found)
            if late < 0:
                return found
            del self._live[digest]
            if found.status == "pending":
                await self._expire(found)
                if late < self._timeout:
                    raise _lapsed(found)
            return await self._ask(demand, digest)

    async def _ask(self, demand: Demand, digest: str) -> Review:
        principal, event, now = demand.principal, demand.event, self._clock()
        await self._forget_the_old(now)
        mine = [
            review
            for review in self._live.values()
            if review.requested_by == principal and review.status == "pending"
        ]
        if len(mine) >= MAX_PENDING:
            seconds = max(min(map(self._lapses_at, mine)) - now, 1.0)
            raise LimitError(
                f"{len(mine)} requests of {principal!r} wait for approval already",
                hint="wait until some of them are decided",
                details={"limit": "pending_approvals", "retry_after": round(seconds, 3)},
            )
        review = Review(
            id=secrets.token_hex(6),
            kind=APPROVAL,
            subject=event,
            requested_by=principal,
            requested_at=now,
            expires_at=now + self._timeout,
            payload=_payload(demand, digest),
        )
        with anyio.CancelScope(shield=True):
            await self._auditor.record(
                principal=principal,
                event=event,
                outcome="waiting",
                reason="approval_required",
                decision=demand.decision,
                revision=demand.revision,
                details={"review": review.id, "data": summary(demand.data)},
            )
            await self._store.review_add(review)
            self._live[digest] = review
        notice: dict[str, Any] = {"id": review.id, "event": event, "requested_by": principal}
        notice |= {"expires_at": review.expires_at}
        self._show(REQUESTED_EVENT, notice, principal, of=event)
        log.info("approval_requested", review=review.id, event_name=event, principal=principal)
        return review

    async def _hear(self, review: Review, principal: str, until: float) -> bool:
        """Wait for news of a request; False when there are none and the caller must not wait."""
        left = min(until - anyio.current_time(), self._lapses_at(review) - self._clock())
        crowded = self._waiting.total() >= MAX_WAITING_IN_ALL
        if left <= 0 or crowded or self._waiting[principal] >= MAX_WAITING:
            return self._lapses_at(review) <= self._clock()
        bell = self._bells.setdefault(review.id, anyio.Event())
        self._waiting[principal] += 1
        try:
            with anyio.move_on_after(left):
                await bell.wait()
        finally:
            self._waiting[principal] -= 1
            self._waiting += Counter()  # drops those that are at zero
        return True

    def _ring(self, review: str) -> None:
        bell = self._bells.pop(review, None)
        if bell is not None:
            bell.set()

    async def _use(self, review: Review, decision: str) -> None:
        """Write that an approval is used up. The store takes one such mark for each, ever."""
        now = self._clock()
        mark = Review(
            id=_use_of(review.id),
            kind=USE,
            subject=review.subject,
            requested_by=review.requested_by,
            requested_at=now,
            expires_at=None,
            payload=msgspec.json.encode({"review": review.id, "decision": decision}),
            status="approved",
        )
        with anyio.CancelScope(shield=True):
            await self._store.review_add(mark)

    async def _expire(self, review: Review) -> None:
        try:
            await self._store.review_decide(review.id, "expired", "", "", self._clock())
        except ConflictError:
            log.debug("approval_decided_late", review=review.id)
        except RemitError as error:  # it has lapsed whether or not that is written down
            log.warning("approval_not_expired", review=review.id, problem=error.message)
        self._ring(review.id)

    async def _forget_the_old(self, now: float) -> None:
        for digest, review in list(self._live.items()):
            if self._lapses_at(review) + self._timeout <= now:
                del self._live[digest]
                if review.status == "pending":
                    await self._expire(review)

    def _digest(self, demand: Demand) -> str:
        """Who asks, for what, with which arguments.

        By the key and not only by the name: a name can be given to somebody else. In msgpack and
        not in JSON: there, NaN is null and bytes are text.
        """
        agent = self._fleet.get(demand.principal)
        who = (agent.id, agent.public_key, agent.token_hash, agent.created_at) if agent else None
        try:
            packed = msgspec.msgpack.encode([who, demand.event, demand.data], order="deterministic")
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise _unreadable() from error
        return sha256(packed).hexdigest()

    def _lapses_at(self, review: Review) -> float:
        """A request lapses as it says; a decision counts as long as a request may wait."""
        if review.decided_at is not None:
            return review.decided_at + self._timeout
        return review.expires_at or 0.0


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


def _payload(demand: Demand, digest: str) -> bytes:
    event = demand.event
    try:
        shown = msgspec.json.encode(demand.data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _unreadable() from error
    if len(shown) > MAX_DATA_BYTES:
        raise TooLargeError(
            f"{event!r} waits for approval, and nobody can approve {len(shown):,} bytes of data",
            hint=f"send {MAX_DATA_BYTES:,} bytes at the most",
            details={"limit": MAX_DATA_BYTES, "size": len(shown)},
        )
    return msgspec.json.encode({"event": event, "data": msgspec.Raw(shown), "digest": digest})


def _unreadable() -> InvalidDataError:
    return InvalidDataError(
        "these data cannot be shown to the one who would approve them", details={"path": "$"}
    )


def _digest_in(review: Review) -> str:
    return str(msgspec.json.decode(review.payload)["digest"])


def _use_of(review: str) -> str:
    return f"{review}-use"


def _details(review: Review) -> dict[str, Any]:
    return {"review": review.id, "event": review.subject}


def _pending(review: Review) -> ApprovalPendingError:
    return ApprovalPendingError(
        f"{review.subject!r} waits for approval as {review.id}",
        hint="repeat the same call later: it runs once it is approved",
        details=_details(review) | {"expires_at": review.expires_at},
    )


def _rejected(review: Review) -> DeniedError:
    why = f": {review.note}" if review.note else ""
    error = DeniedError(
        f"this call of {review.subject!r} was rejected{why}", reason="explicit_deny"
    )
    error.details |= _details(review) | {"note": review.note}
    return error


def _lapsed(review: Review) -> DeniedError:
    error = DeniedError(
        f"nobody approved this call of {review.subject!r} in time",
        reason="explicit_deny",
        hint="repeat the call to ask again",
    )
    error.details |= _details(review) | {"note": "timed out"}
    return error
