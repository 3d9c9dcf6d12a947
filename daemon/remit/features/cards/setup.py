"""Cards in a daemon: their services, their folders, what is counted, and their reviews."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from remit.config.settings.table import Settings
from remit.features.cards.library import CardLibrary, configured_roots
from remit.features.cards.ready_card import ReadyCard
from remit.features.cards.reviews import CARD, CardReviews
from remit.features.cards.scorers import Scorers, configured_scorers, token_count
from remit.features.cards.select import CardsConfig, cards_config
from remit.features.cards.service import Cards, CardSelector
from remit.features.cards.sources import CardCatalogues, Fetch, StoredCards, fetch_over_http
from remit.features.cards.store import CardCache, CardMemory
from remit.features.cards.views import MOST_REASONS, MOST_SUSPICIOUS
from remit.features.reviews.desk import (
    ReviewDecision,
    ReviewDesk,
    ReviewItems,
    ReviewKind,
    ReviewQuery,
)
from remit.features.reviews.store import ReviewRows
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.dispatch.visibility import unseen
from remit.kernel.feature import Setup, Startup
from remit.kernel.reload.full_reload import Difference, Reading, ReloadPart
from remit.kernel.reload.watch import watch_directories
from remit.kernel.store.records import ReviewStatus
from remit.kernel.store.rows import BlobRows
from remit.model.principal import Cause

_MOST_TEXT = 2_000
"""Characters of a card that a review shows."""


class CardOptions(msgspec.Struct, frozen=True):
    """How cards are configured; nothing is loaded before somebody asks."""

    make_library: Callable[[], CardLibrary]
    make_scorers: Callable[[], Scorers]
    count: Callable[[str], int]
    config: CardsConfig
    has_own: Callable[[], bool]
    """Whether there are folders of cards besides what is built in."""
    catalogues: tuple[str, ...] = ()
    fetch: Fetch = fetch_over_http(private=False)


def configured_cards(settings: Settings) -> CardOptions:
    """Cards as the settings want them."""
    count = token_count(settings)
    own = [one.path for one in configured_roots(settings) if one.source != "built_in"]
    return CardOptions(
        lambda: CardLibrary(configured_roots(settings), count=count),
        lambda: configured_scorers(settings),
        count,
        cards_config(settings),
        lambda: any(path.exists() for path in own),
        settings.card_catalogues,
        fetch_over_http(private=settings.web_fetch_private),
    )


def _build(kernel: Kernel, startup: Startup) -> None:
    options = startup.take(CardOptions, lambda: configured_cards(startup.settings))
    config, clock = options.config, kernel.lapsing_clock
    reviews = CardReviews(ReviewRows(kernel.database), clock=kernel.wall_clock)
    cache = CardCache(options.make_library, reviews, options.has_own)
    selector = CardSelector(
        config, cache, clock=clock, make_scorers=options.make_scorers, count=options.count
    )
    blobs = BlobRows(kernel.database)
    stored = StoredCards(blobs, clock=kernel.wall_clock)
    catalogues = CardCatalogues(
        options.catalogues, blobs, fetch=options.fetch, clock=kernel.wall_clock
    )
    for source in (stored, catalogues):
        cache.add(source)
    memory = CardMemory(BlobRows(kernel.database), config.mode)
    tell = kernel.delivery.publish
    cards = Cards(config, cache, selector, memory, kernel.audit_log, tell=tell, clock=clock)
    kernel.provide(cards, reviews, stored, catalogues)
    if desk := kernel.find(ReviewDesk):
        desk.register(CARD_REVIEWS)
    kernel.reload_parts.append(ReloadPart("cards", lambda: _reload(cache)))
    kernel.file_problems.append(lambda: cache.problems)
    kernel.figures.append(lambda: memory.figures)


def _reload(cache: CardCache) -> Reading:
    before = cache.own_hashes()
    cache.changed()

    async def read(_cause: Cause) -> Difference:
        await cache.reread()
        return Difference.between(before, cache.own_hashes(), cache.problems)

    return read


@asynccontextmanager
async def _run(kernel: Kernel, settings: Settings) -> AsyncGenerator[None]:
    """Take over what was decided and counted, follow the folders, and keep what is counted."""
    cards = kernel.service(Cards)
    await kernel.service(CardReviews).load()
    await cards.memory.load()
    await kernel.service(StoredCards).load()
    catalogues = kernel.service(CardCatalogues)
    await catalogues.load()

    reread = cards.cache.reread
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reread)
        if settings.watch:
            folders = [root.path for root in configured_roots(settings)]
            tasks.start_soon(watch_directories, folders, reread)
        tasks.start_soon(cards.memory.keep)
        tasks.start_soon(catalogues.keep, settings.card_refresh_seconds)
        yield
        tasks.cancel_scope.cancel()


async def _listed_reviews(ctx: Context, query: ReviewQuery) -> ReviewItems:
    """Cards of one status, with what makes them suspicious and what agents would read."""
    if not ctx.sees_everything:
        return ReviewItems([])
    found = await ctx.kernel.service(Cards).cache.suspicious()
    wanted = [ready for ready, state in found.values() if state == query.status]
    shown = [_review_entry(ctx, ready, query.status) for ready in wanted[:MOST_SUSPICIOUS]]
    return ReviewItems(shown)


async def _decide_review(ctx: Context, card: str, decision: ReviewDecision) -> dict[str, Any]:
    """Decide about the content that a card has now; it counts from the next question on."""
    cache = ctx.kernel.service(Cards).cache
    found = await cache.suspicious() if ctx.sees_everything else {}
    if card not in found:
        raise unseen(card, found, "card", purpose="review", hint="'remit review list' shows them")
    ready, _ = found[card]
    await ctx.kernel.service(CardReviews).decide(
        card, ready.content_hash, decision.status, by=ctx.principal.id, note=decision.note
    )
    cache.changed()
    return _review_entry(ctx, ready, decision.status)


def _review_entry(ctx: Context, ready: ReadyCard, status: ReviewStatus) -> dict[str, Any]:
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


CARD_REVIEWS = ReviewKind(
    name=CARD, prefix=f"{CARD}:", listed=_listed_reviews, decide=_decide_review
)
"""What the review desk knows of these reviews."""


SETUP = Setup(build=_build, run=_run)
