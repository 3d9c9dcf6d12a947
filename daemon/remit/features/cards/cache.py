"""The cards in force, from all sources, and when they have to be read again.

One generation counts for all: an edit of a folder, a card that was put, a catalogue that was
fetched, a reload and a review each raise it, and nobody is answered from an older one. A file that
was written before a call counts at that call, whether or not the folders are watched.
"""

from collections.abc import Callable

import anyio
import anyio.to_thread
import structlog

from remit.errors import DefinitionError, Problem, UnavailableError
from remit.features.cards.library import CardLibrary, CardSet
from remit.features.cards.ready_card import CardText, ReadyCard
from remit.features.cards.sources import TextSource
from remit.features.cards.store import CardReviews
from remit.kernel.reload.full_reload import ProblemLog
from remit.kernel.store.records import ReviewStatus

log = structlog.get_logger()


class CardCache:
    """The cards in force. Nothing is read before somebody asks."""

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
        self._sources: list[TextSource] = []
        self._generation, self._read_at = 1, 0
        self._stamp: object = None
        self._found = CardSet()
        self._is_known = False
        self._lock = anyio.Lock()
        self._problem_log = ProblemLog("card_problem")

    def add(self, source: "TextSource") -> None:
        """Take in the cards of a source too."""
        self._sources.append(source)
        source.changed = self.changed

    def changed(self) -> None:
        """Say that everything must be looked at again before the next answer."""
        self._generation += 1

    async def reread(self) -> None:
        """Look at everything again now, so that what is wrong is told before a card is wanted.

        Where there is nothing but what is built in, nothing is loaded before somebody asks.
        """
        self.changed()
        if self._library is not None or self._has_own() or any(one.texts for one in self._sources):
            await self.cards()
        else:
            self._is_known = True

    def own_hashes(self) -> dict[str, str] | None:
        """The hash of each card that is not built in, as it was read last; None: never yet."""
        if not self._is_known:
            return None
        own = (one for one in self._found.cards if one.card.source != "built_in")
        return {one.card.id: one.content_hash for one in own}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was wrong with the cards when they were last read."""
        return self._found.problems

    async def cards(self) -> CardSet:
        """What is in force now; when it cannot be read, what was read last."""
        await self._look()
        if self._read_at != self._generation:
            async with self._lock:
                if self._read_at != self._generation:
                    await self._read()
        return self._found

    async def _look(self) -> None:
        """Raise the generation when a file is not as it was when the folders were read."""
        if self._library is None or self._read_at != self._generation:
            return
        before = self._stamp
        found = await anyio.to_thread.run_sync(self._library.stamp)
        if found is None or found != before:
            self.changed()

    async def _read(self) -> None:
        generation = self._generation
        try:
            if self._library is None:
                self._library = await anyio.to_thread.run_sync(self._make_library)
            self._stamp = await anyio.to_thread.run_sync(self._library.stamp)
            texts = [text for one in self._sources for text in one.texts]
            told = [problem for one in self._sources for problem in one.problems]
            self._found = await anyio.to_thread.run_sync(
                self._library.load, self._reviews.approved, texts, told
            )
        except Exception:  # cards are a help: without them the daemon goes on
            log.exception("cards_not_read")
        self._problem_log.tell(self._found.problems)
        self._read_at, self._is_known = generation, True

    async def check(self, text: str) -> ReadyCard:
        """Read a card as somebody wants to put it.

        Raises:
            DefinitionError: it has mistakes, or more tokens than it allows itself.
        """
        await self.cards()
        library = self._library
        if library is None:
            raise UnavailableError(
                "the cards cannot be read", hint="the log of the daemon says why"
            )
        given = CardText(text.encode("utf-8", "replace"), "$.card", "store")
        found = await anyio.to_thread.run_sync(library.read, given)
        if found.ready is None or found.problems:
            raise DefinitionError(found.problems)
        return found.ready

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
