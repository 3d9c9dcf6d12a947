"""Decisions about cards that look suspicious; each counts for one content of a card only."""

import secrets
from collections.abc import Callable

import anyio
import msgspec

from remit.errors import ConflictError
from remit.features.reviews.desk import stored_reviews
from remit.features.reviews.store import ReviewRows
from remit.kernel.store.records import Review, ReviewStatus
from remit.model.event import Service

CARD = "card"
"""The kind of the review of a card that looks suspicious."""
DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError)


class CardDecision(msgspec.Struct, frozen=True):
    """What was decided about a card, last."""

    status: ReviewStatus
    content_hash: str
    by: str
    at: float
    note: str


class CardReviews(Service):
    """The newest decision about each card; all of them are in the store."""

    def __init__(self, store: ReviewRows, *, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._decisions: dict[str, CardDecision] = {}
        self._deciding = anyio.Lock()

    async def load(self) -> None:
        """Take over what was decided; what cannot be read counts as undecided."""
        async for review in stored_reviews(self._store, CARD):
            try:
                body = msgspec.json.decode(review.payload)
                card, content_hash = str(body["card"]), str(body["content_hash"])
            except DAMAGED:
                continue
            at = review.decided_at or review.requested_at
            self._decisions[card] = CardDecision(
                review.status, content_hash, review.decided_by, at, review.note
            )

    @property
    def approved(self) -> frozenset[str]:
        """Hashes of the contents that may be shown although they look suspicious."""
        decisions = self._decisions.values()
        return frozenset(one.content_hash for one in decisions if one.status == "approved")

    def decision(self, card: str, content_hash: str) -> CardDecision | None:
        """What was decided about exactly this content; None when nothing was."""
        found = self._decisions.get(card)
        return found if found is not None and found.content_hash == content_hash else None

    async def decide(
        self, card: str, content_hash: str, status: ReviewStatus, *, by: str, note: str
    ) -> CardDecision:
        """Store a decision; it counts when this returns.

        Raises:
            ConflictError: it is decided so already.
            StoreError: it cannot be stored.
        """
        async with self._deciding:
            before = self.decision(card, content_hash)
            if before is not None and before.status == status:
                raise ConflictError(f"the card {card!r} is {status} already", details={"id": card})
            now = self._clock()
            decision = CardDecision(status, content_hash, by, now, note)
            with anyio.CancelScope(shield=True):
                await self._store.review_add(_record(card, decision))
                self._decisions[card] = decision
            return decision


def _record(card: str, decision: CardDecision) -> Review:
    body = {"card": card, "content_hash": decision.content_hash}
    return Review(
        id=f"{CARD}:{card}@{secrets.token_hex(6)}",
        kind=CARD,
        subject=card,
        requested_by=decision.by,
        requested_at=decision.at,
        expires_at=None,
        payload=msgspec.json.encode(body),
        status=decision.status,
        decided_by=decision.by,
        decided_at=decision.at,
        note=decision.note,
    )
