"""Reviews of cards that look suspicious, for those who see everything.

Whoever decides what is put before every agent must not be an agent that sees only its own part.
"""

from typing import TYPE_CHECKING, Any

from remit.features.cards.reviews import CardReviews
from remit.features.cards.service import Awareness
from remit.features.cards.views import MOST_REASONS, MOST_SUSPICIOUS
from remit.kernel.authority.approvals import CARD
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import unseen
from remit.kernel.store.records import ReviewStatus

if TYPE_CHECKING:
    from remit.features.cards.folder import ReadyCard

_MOST_TEXT = 2_000


async def listed(ctx: Context, status: ReviewStatus) -> list[dict[str, Any]]:
    """Cards of one status, with what makes them suspicious and what agents would read."""
    if not ctx.sees_everything:
        return []
    found = await ctx.kernel.service(Awareness).shelf.suspicious()
    wanted = [ready for ready, state in found.values() if state == status]
    return [_entry(ctx, ready, status) for ready in wanted[:MOST_SUSPICIOUS]]


async def decide(ctx: Context, card: str, status: ReviewStatus, note: str) -> dict[str, Any]:
    """Decide about the content that a card has now; it counts from the next question on."""
    shelf = ctx.kernel.service(Awareness).shelf
    found = await shelf.suspicious() if ctx.sees_everything else {}
    if card not in found:
        raise unseen(card, found, "card", purpose="review", hint="'remit review list' shows them")
    ready, _ = found[card]
    await ctx.kernel.service(CardReviews).decide(
        card, ready.content_hash, status, by=ctx.principal.id, note=note
    )
    shelf.changed()
    return _entry(ctx, ready, status)


def _entry(ctx: Context, ready: "ReadyCard", status: ReviewStatus) -> dict[str, Any]:
    card = ready.card
    decision = ctx.kernel.service(CardReviews).decision(card.id, ready.content_hash)
    return {
        "id": f"{CARD}:{card.id}",
        "kind": CARD,
        "status": status,
        "card": card.id,
        "name": card.name,
        "source": card.source,
        "file": card.place.file,
        "score": ready.score,
        "reasons": list(ready.reasons)[:MOST_REASONS],
        "text": card.text[:_MOST_TEXT],
        "content_hash": ready.content_hash,
        "decided_by": decision.by if decision else "",
        "decided_at": decision.at if decision else None,
        "note": decision.note if decision else "",
    }
