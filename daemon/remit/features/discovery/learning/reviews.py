"""Reviews of lessons: the operator lets one count for everybody, or says that it never shall."""

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any

import msgspec

from remit.errors import ConflictError
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.lessons import Learned, Lesson, LessonKind
from remit.features.discovery.learning.store import LessonKeeper
from remit.features.reviews.desk import (
    ReviewDecision,
    ReviewItems,
    ReviewKind,
    ReviewQuery,
    no_such_review,
)
from remit.kernel.dispatch.context import Context
from remit.kernel.store.records import ReviewStatus

LESSON = "lesson"
PREFIX = "lesson:"
_DECIDED: dict[str, ReviewStatus] = {"accepted": "approved", "rejected": "rejected"}


class _Review(msgspec.Struct):
    """One request that was learned for one descriptor, by whoever taught it."""

    subject: str
    text: str
    by: list[str] = []
    voices: int = 0
    weight: float = 0.0
    counts: str = "own"
    decision: Lesson | None = None

    @property
    def id(self) -> str:
        told = msgspec.json.encode((self.subject, self.text))
        return blake2b(told, digest_size=8).hexdigest()

    @property
    def status(self) -> ReviewStatus | None:
        """None: it counts for everybody anyway, so nothing waits."""
        if self.decision is not None:
            return _DECIDED[self.decision.kind]
        return "pending" if self.counts == "own" else None

    def to_json(self) -> dict[str, Any]:
        """The shape that callers read."""
        decided = self.decision
        return {
            "id": PREFIX + self.id,
            "kind": LESSON,
            "subject": self.subject,
            "query": self.text,
            "by": self.by,
            "voices": self.voices,
            "weight": round(self.weight, 3),
            "status": self.status,
            "decided_by": decided.by if decided else "",
            "decided_at": decided.at if decided else None,
        }


def lesson_reviews(
    experience: Experience, keeper: LessonKeeper, learn: Callable[[], Awaitable[None]]
) -> ReviewKind:
    """What the desk knows of these reviews; only the operator sees them.

    Args:
        experience: has the lessons.
        keeper: writes a decision down before it is answered.
        learn: takes a decision into the index.
    """

    async def listed(ctx: Context, query: ReviewQuery) -> ReviewItems:
        if not ctx.principal.is_operator:
            return ReviewItems([])
        found = [one for one in _reviews(experience) if one.status == query.status]
        found.sort(key=lambda one: (-one.voices, -one.weight, one.subject, one.text))
        items = [one.to_json() for one in found[: query.limit]]
        return ReviewItems(items, left_out=len(found) - len(items))

    async def decide(ctx: Context, id_: str, decision: ReviewDecision) -> dict[str, Any]:
        decision.refuse_effect()
        known = _reviews(experience) if ctx.principal.is_operator else []
        found = next((one for one in known if one.id == id_), None)
        if found is None:
            raise no_such_review(PREFIX + id_)
        if found.status == decision.status:
            message = f"{PREFIX}{id_} is {decision.status} already"
            raise ConflictError(message, details={"id": PREFIX + id_})
        kind: LessonKind = "accepted" if decision.status == "approved" else "rejected"
        experience.decide(found.subject, found.text, kind, ctx.principal.id)
        await keeper.write()
        await learn()
        (changed,) = [one for one in _reviews(experience) if one.id == id_]
        return changed.to_json() | {"note": decision.note}

    return ReviewKind(
        name=LESSON, prefix=PREFIX, listed=listed, decide=decide, is_listed_by_name=True
    )


def _reviews(experience: Experience) -> list[_Review]:
    found: dict[tuple[str, str], _Review] = {}
    for one in experience.examples():
        _add(found.setdefault((one.subject, one.text), _Review(one.subject, one.text)), one)
    for decided in experience.decisions():
        about = (decided.subject, decided.text)
        found.setdefault(about, _Review(*about)).decision = decided
    return list(found.values())


def _add(review: _Review, learned: Learned) -> None:
    review.by.append(learned.by)
    review.weight += learned.weight
    review.voices = max(review.voices, learned.voices)
    if learned.counts != "own":
        review.counts = learned.counts
