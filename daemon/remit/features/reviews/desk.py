"""The review desk: everything that waits for somebody's yes, in one list and decided in one way.

A feature registers the kind of its reviews. The desk reads the id of a review once and hands it to
its kind, which knows who may see and decide it. Kinds that are listed whole come first, in the
order of their names; those that are listed in pages come behind them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from remit.errors import InvalidDataError, NotFoundError
from remit.features.reviews.store import ReviewRows
from remit.kernel.dispatch.context import Context
from remit.kernel.store.records import Review, ReviewStatus
from remit.model.event import Service
from remit.model.limits import Effect


class ReviewQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which reviews are asked for."""

    status: ReviewStatus
    effect: Effect | None = None
    """Only upstream tools that do this."""
    limit: int = 50
    """How many at the most, of a kind that is listed in pages."""
    after: str = ""
    """The id behind which a page begins."""


class ReviewItems(msgspec.Struct, frozen=True):
    """Reviews as a caller is shown them."""

    items: list[dict[str, Any]]
    left_out: int = 0
    """How many more there are that did not fit."""
    next: str | None = None
    """Where the next page begins, if there is one."""


class ReviewDecision(msgspec.Struct, frozen=True):
    """What somebody decides."""

    status: ReviewStatus
    note: str = ""
    effect: Effect | None = None

    def refuse_effect(self) -> None:
        """Check that no effect is named, for kinds that have none.

        Raises:
            InvalidDataError: one is.
        """
        if self.effect is not None:
            message = "an effect is named for upstream tools alone"
            raise InvalidDataError(message, hint="leave it out")


class ReviewKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of reviews."""

    name: str
    listed: Callable[[Context, ReviewQuery], Awaitable[ReviewItems]]
    """Answers those that the caller may see."""
    decide: Callable[[Context, str, ReviewDecision], Awaitable[dict[str, Any]]]
    """Decides about what an id names; `prefix` is taken off it."""
    prefix: str = ""
    """How its ids begin, with the colon."""
    separator: str = ""
    """What stands in its ids and in no others without a prefix."""
    has_effects: bool = False
    """Whether its reviews can be asked for by effect."""
    is_paged: bool = False
    is_listed_by_name: bool = False
    """Whether they are listed only when this kind is asked for: nobody waits for them."""


class ReviewDesk(Service):
    """Lists and decides reviews of every registered kind."""

    def __init__(self) -> None:
        self._kinds: list[ReviewKind] = []

    def register(self, kind: ReviewKind) -> None:
        """Add a kind."""
        self._kinds = sorted([*self._kinds, kind], key=lambda one: (one.is_paged, one.name))

    async def listed(self, ctx: Context, query: ReviewQuery, kind: str | None) -> ReviewItems:
        """The reviews of one kind, or of all, that the caller may see.

        What is behind a page belongs to the kinds that are listed in pages.
        """
        items: list[dict[str, Any]] = []
        left_out, following = 0, None
        for one in self._kinds:
            if kind not in (None, one.name) or (query.effect is not None and not one.has_effects):
                continue
            if query.after and not one.is_paged:
                continue
            if one.is_listed_by_name and kind is None:
                continue
            found = await one.listed(ctx, query)
            items += found.items
            left_out += found.left_out
            following = found.next or following
        return ReviewItems(items, left_out, following)

    async def decide(self, ctx: Context, id_: str, decision: ReviewDecision) -> dict[str, Any]:
        """Decide about what an id names.

        Raises:
            NotFoundError: there is no such review, or none that the caller may see.
            RemitError: what its kind says against it.
        """
        kind = self._kind_of(id_)
        return await kind.decide(ctx, id_.removeprefix(kind.prefix), decision)

    def _kind_of(self, id_: str) -> ReviewKind:
        for kind in self._kinds:
            if kind.prefix and id_.startswith(kind.prefix):
                return kind
        plain = [kind for kind in self._kinds if not kind.prefix]
        for kind in sorted(plain, key=lambda one: not one.separator):
            if kind.separator in id_:
                return kind
        raise no_such_review(id_)


def no_such_review(id_: str) -> NotFoundError:
    """The answer about a review that the caller cannot see."""
    return NotFoundError(f"there is no review {id_!r}", hint="'remit review list' shows them")


async def stored_reviews(store: ReviewRows, kind: str, status: Any = None) -> AsyncIterator[Review]:
    """All reviews of a kind, oldest first."""
    after = ""
    while True:
        page = await store.review_list(kind=kind, status=status, after=after)
        for review in page.items:
            yield review
        if page.next is None:
            return
        after = page.next
