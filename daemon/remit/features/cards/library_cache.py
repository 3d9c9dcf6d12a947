"""The cards in force, read again before the next answer when a folder or a decision changed."""

from collections.abc import Callable

import anyio
import anyio.to_thread
import structlog

from remit.features.cards.folder import ReadyCard
from remit.features.cards.library import CardLibrary, CardSet
from remit.features.cards.reviews import CardReviews
from remit.kernel.reload.problem_log import ProblemLog
from remit.kernel.store.records import ReviewStatus
from remit.model.place import Problem

log = structlog.get_logger()


class CardShelf:
    """Follows the folders and the decisions. Nothing is read before somebody asks."""

    def __init__(
        self,
        make_library: Callable[[], CardLibrary],
        reviews: CardReviews,
        has_own: Callable[[], bool],
    ) -> None:
        """Wire the parts; `has_own` tells whether there is anything but what is built in."""
        self._make_library = make_library
        self._has_own = has_own
        self._library: CardLibrary | None = None
        self._reviews = reviews
        self._wanted, self._read_at = 1, 0
        self._found = CardSet()
        self._is_known = False
        self._lock = anyio.Lock()
        self._problem_log = ProblemLog("card_problem")

    def changed(self) -> None:
        """Say that everything must be looked at again before the next answer."""
        self._wanted += 1

    async def reread(self) -> None:
        """Look at everything again now, so that what is wrong is told before a card is wanted.

        Where there is nothing but what is built in, nothing is loaded before somebody asks.
        """
        self.changed()
        if self._library is not None or self._has_own():
            await self.cards()
        else:
            self._is_known = True

    def own_hashes(self) -> dict[str, str] | None:
        """The hash of each file that is not built in, as it was read last; None: never yet."""
        if not self._is_known:
            return None
        own = (one for one in self._found.cards if one.card.source != "built_in")
        return {one.card.id: one.content_hash for one in own}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was wrong with the files when they were last read."""
        return self._found.problems

    async def cards(self) -> CardSet:
        """What is in force now; when it cannot be read, what was read last."""
        if self._read_at != self._wanted:
            async with self._lock:
                if self._read_at != self._wanted:
                    await self._read()
        return self._found

    async def _read(self) -> None:
        wanted = self._wanted
        try:
            if self._library is None:
                self._library = await anyio.to_thread.run_sync(self._make_library)
            self._found = await anyio.to_thread.run_sync(self._library.load, self._reviews.approved)
        except Exception:  # cards are a help: without them the daemon goes on
            log.exception("cards_not_read")
        self._problem_log.tell(self._found.problems)
        self._read_at, self._is_known = wanted, True

    async def suspicious(self) -> dict[str, tuple[ReadyCard, ReviewStatus]]:
        """Each card that waits for a decision, or about whose content one was made."""
        found: dict[str, tuple[ReadyCard, ReviewStatus]] = {}
        for ready in (await self.cards()).cards:
            decision = self._reviews.decision(ready.card.id, ready.content_hash)
            if decision is not None:
                found[ready.card.id] = (ready, decision.status)
            elif ready.is_quarantined:
                found[ready.card.id] = (ready, "pending")
        return found
