"""The approval gate: calls that wait, with their exact arguments, for somebody's yes.

A yes is bound to who asked, in which session, to the event, to every argument and to what the
arguments stood for. It counts once, and not for ever. What nobody decides in time is refused, and
so is what was approved and not used: both are in the audit. Requests and decisions are in the
store, so a restart between the two loses neither; what was used is there before the call runs.
"""

import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import msgspec
import structlog

from remit.errors import ConflictError, DeniedError, LimitError, RemitError
from remit.features.reviews.calls import (
    APPROVAL,
    LAPSE,
    USE,
    digest_in,
    lapse_of,
    lapsed,
    payload,
    pending,
    rejected,
    unreadable,
    use_of,
)
from remit.features.reviews.desk import stored_reviews
from remit.features.reviews.store import ReviewRows
from remit.kernel.audit.log import AuditLog, summary
from remit.kernel.authority.fleet import Fleet
from remit.kernel.store.records import Review, ReviewStatus
from remit.kernel.store.rows import shown_object
from remit.model.event import Service

if TYPE_CHECKING:
    from remit.kernel.dispatch.context import Demand

log = structlog.get_logger()

REQUESTED_EVENT = "review:requested"
MAX_PENDING = 20
"""Requests of one agent that may wait at the same time: an operator reads them all."""
MAX_WAITING = 4
"""Calls of one agent that may wait at the same time: each holds a place in the daemon."""
MAX_WAITING_IN_ALL = 64
_TICK = 0.001
_QUIET_SECONDS = 60.0
"""How long nobody looks for what has lapsed when nothing is known to lapse sooner."""


class Show(Protocol):
    """How those who watch are told."""

    def __call__(self, event: str, data: Any, origin: str, *, of: str) -> int:
        """Tell everybody who asked for an event and may use the event `of`."""


class Approvals(Service):
    """Lets a call through when exactly it was approved."""

    def __init__(  # noqa: PLR0913 - one argument a part
        self,
        store: ReviewRows,
        audit_log: AuditLog,
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
            audit_log: is told about each request.
            fleet: the living agents.
            show: tells those who watch about a request, if they may use the event themselves.
            clock: the wall clock, which must not go back while this runs.
            timeout: seconds until a request lapses, and until a decision does.
            wait: seconds that a call waits for its decision.
        """
        self._store = store
        self._audit_log = audit_log
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
        self._news = anyio.Event()

    async def load(self) -> None:
        """Take over what waits, and what was decided but not used yet; write what has lapsed."""
        closed = {mark.id async for mark in stored_reviews(self._store, USE)}
        closed |= {mark.id async for mark in stored_reviews(self._store, LAPSE)}
        for status in ("pending", "approved", "rejected"):
            async for review in stored_reviews(self._store, APPROVAL, status):
                if closed & {use_of(review.id), lapse_of(review.id)}:
                    continue
                if self._is_over(review):
                    if status != "rejected":
                        await self._lapse(review)
                elif digest := digest_in(review):
                    self._live[digest] = review
                else:  # nobody can say what it is about: it approves nothing
                    log.warning("approval_unreadable", review=review.id)

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

    async def clear(self, demand: "Demand", *, budget: float) -> str:
        """Wait until this call is approved; answers the id of the approval, which is used up.

        Raises:
            DeniedError: it was rejected, or nobody approved it in time.
            ApprovalPendingError: it still waits; the same call finds it again.
            LimitError: too many requests of this caller wait already.
        """
        holder = self._holder(demand.principal)
        until = anyio.current_time() + min(self._wait, self._timeout, budget)
        while True:
            # Anew each time: what the data stand for may have been edited while this waited.
            digest = _digest(holder, demand)
            review = await self._find_or_ask(demand, digest)
            if review.status == "rejected":
                raise rejected(review)
            if review.status == "approved":
                if self._live.get(digest) is not review:
                    continue  # another call with the same arguments has used it up
                # INVARIANT: nothing is awaited between the look and the removal.
                del self._live[digest]
                await self._use(review, demand.decision)
                if _digest(self._holder(demand.principal), demand) != digest:
                    raise DeniedError(f"{demand.principal!r} was revoked", reason="revoked")
                return review.id
            if not await self._hear(review, demand.principal, until):
                raise pending(review)

    def is_spent(self, review: Review) -> bool:
        """Tell whether a yes counts no more, as nobody has used it in time."""
        return review.status == "approved" and self._lapses_at(review) <= self._clock()

    async def is_used(self, review: Review) -> bool:
        """Tell whether the call that was approved was made."""
        return await self._store.review_get(use_of(review.id)) is not None

    async def decide(self, review: str, status: ReviewStatus, by: str, note: str) -> Review:
        """Decide a request.

        Raises:
            ConflictError: it was decided before, or has lapsed.
            NotFoundError: there is none with that id.
        """
        with anyio.CancelScope(shield=True):
            # A decision that is stored but not known here would be heard of only after a restart.
            decided = await self._store.review_decide(review, status, by, note, self._clock())
        digest = digest_in(decided)
        if digest and self._live.get(digest, decided).id == decided.id:
            self._live[digest] = decided
        self._ring(decided.id)
        self._news.set()
        return decided

    async def _find_or_ask(self, demand: "Demand", digest: str) -> Review:
        async with self._asking:
            found = self._live.get(digest)
            if found is None:
                return await self._ask(demand, digest)
            late = self._clock() - self._lapses_at(found)
            if late < 0:
                return found
            del self._live[digest]
            await self._lapse(found)
            if found.status in ("pending", "expired") and late < self._timeout:
                raise lapsed(found)
            return await self._ask(demand, digest)

    async def _ask(self, demand: "Demand", digest: str) -> Review:
        principal, event, now = demand.principal, demand.event, self._clock()
        await self.sweep()
        self._check_room(principal, now)
        review = Review(
            id=secrets.token_hex(6),
            kind=APPROVAL,
            subject=event,
            requested_by=principal,
            requested_at=now,
            expires_at=now + self._timeout,
            payload=payload(demand, digest),
        )
        with anyio.CancelScope(shield=True):
            await self._audit_log.record(
                principal=principal,
                event=event,
                outcome="waiting",
                reason="approval_required",
                decision=demand.decision,
                revision=demand.revision,
                details={"review": review.id, "data": summary(demand.data)} | _session_in(demand),
            )
            await self._store.review_add(review)
            self._live[digest] = review
            self._news.set()
        notice: dict[str, Any] = {"id": review.id, "event": event, "requested_by": principal}
        notice |= {"expires_at": review.expires_at, "session": demand.session.name}
        self._show(REQUESTED_EVENT, notice, principal, of=event)
        log.info("approval_requested", review=review.id, event_name=event, principal=principal)
        return review

    def _check_room(self, principal: str, now: float) -> None:
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
        mark = self._mark(review, USE, use_of(review.id), decision)
        with anyio.CancelScope(shield=True):
            await self._store.review_add(mark)

    async def sweep(self) -> float:
        """Write down what has lapsed; answers the seconds until something else may."""
        nearest = _QUIET_SECONDS
        for digest, review in list(self._live.items()):
            left = self._lapses_at(review) - self._clock()
            if left <= 0 and review.status == "pending":
                # Kept for a while: the same call is told once that nobody answered it.
                self._live[digest] = msgspec.structs.replace(review, status="expired")
                await self._lapse(review)
            elif left <= 0 and (review.status != "expired" or left + self._timeout <= 0):
                del self._live[digest]
                await self._lapse(review)
            else:
                nearest = min(nearest, left if left > 0 else left + self._timeout)
        return nearest

    @asynccontextmanager
    async def lapsing(self) -> AsyncGenerator[None]:
        """Write down what lapses when it does, for as long as this is open."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            yield
            tasks.cancel_scope.cancel()

    async def _watch(self) -> None:
        while True:
            self._news = anyio.Event()
            with anyio.move_on_after(await self.sweep() + _TICK):
                await self._news.wait()

    async def _lapse(self, review: Review) -> None:
        """Write down that a request or an approval lapsed. It has, whatever the store says."""
        if review.status not in ("pending", "approved"):
            return
        try:
            with anyio.CancelScope(shield=True):
                if review.status == "approved":
                    await self._store.review_add(self._mark(review, LAPSE, lapse_of(review.id)))
                else:
                    await self._store.review_decide(review.id, "expired", "", "", self._clock())
                asked = shown_object(review.payload)
                revision = asked.get("revision")
                await self._audit_log.record(
                    principal=review.requested_by,
                    event=review.subject,
                    outcome="lapsed",
                    reason="approval_required",
                    decision=str(asked.get("decision", "")),
                    revision=revision if isinstance(revision, int) else 0,
                    details={"review": review.id, "approved": review.status == "approved"},
                )
        except ConflictError:
            log.debug("approval_decided_late", review=review.id)
        except RemitError as error:
            log.warning("approval_not_expired", review=review.id, problem=error.message)
        self._ring(review.id)

    def _mark(self, review: Review, kind: str, name: str, decision: str = "") -> Review:
        """What the store takes once about an approval, ever."""
        return Review(
            id=name,
            kind=kind,
            subject=review.subject,
            requested_by=review.requested_by,
            requested_at=self._clock(),
            expires_at=None,
            payload=msgspec.json.encode({"review": review.id, "decision": decision}),
            status="approved",
        )

    def _holder(self, principal: str) -> Any:
        """Who asks, by the key and not only by the name: a name can be given to somebody else."""
        agent = self._fleet.get(principal)
        return (agent.id, agent.public_key, agent.token_hash, agent.created_at) if agent else None

    def _lapses_at(self, review: Review) -> float:
        """A request lapses as it says; a decision counts as long as a request may wait."""
        if review.decided_at is not None:
            return review.decided_at + self._timeout
        return review.expires_at or 0.0


def _digest(holder: Any, demand: "Demand") -> str:
    """Who asks, where, for what, with which arguments, and what these stand for by now.

    In msgpack and not in JSON: there, NaN is null and bytes are text.
    """
    where = (msgspec.structs.astuple(demand.session), demand.opened)
    asked = [holder, where, demand.event, demand.data, demand.meaning()]
    try:
        packed = msgspec.msgpack.encode(asked, order="deterministic")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise unreadable() from error
    return sha256(packed).hexdigest()


def _session_in(demand: "Demand") -> dict[str, str]:
    return {"session": demand.session.name} if demand.session.name else {}
