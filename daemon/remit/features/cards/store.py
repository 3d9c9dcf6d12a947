"""What a daemon has of cards: those in force, and what came of them.

One generation counts for all sources: an edit of a folder, a card that was put, a catalogue that
was fetched, a reload and a review each raise it, and nobody is answered from an older one. A file
that was written before a call counts at that call, whether or not the folders are watched.

The switch is written at once; a day of sessions and the latest injections from time to time.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import structlog

from remit.errors import DefinitionError, Problem, StoreError, UnavailableError
from remit.features.cards.library import CardLibrary, CardSet
from remit.features.cards.ready_card import CardText, ReadyCard
from remit.features.cards.reviews import CardReviews
from remit.features.cards.sources import TextSource
from remit.kernel.reload.full_reload import ProblemLog
from remit.kernel.store.records import ReviewStatus
from remit.kernel.store.rows import BlobRows

log = structlog.get_logger()

DAY = 86_400.0
MIN_SESSIONS = 20
"""Fewer sessions in a day say nothing about a share."""
MAX_SESSIONS = 20_000
"""Sessions that are remembered; beyond that, the share is that of the latest."""
MEMORY_BLOB = "awareness"
SWITCH_BLOB = "awareness_switch"
MAX_TURNS = 1_000
MAX_SCORERS = 32
FIGURES = (
    "card_turns",
    "card_turns_injected",
    "card_turns_monitored",
    "cards_injected",
    "cards_monitored",
)
"""What /metrics tells of the injections since the start."""
_WRITE_SECONDS = 5.0


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


class Switch(msgspec.Struct, frozen=True):
    """Whether injection is allowed to happen at all, and who said so last."""

    on: bool = True
    by: str = ""
    at: float = 0.0
    reason: str = ""


class Turn(msgspec.Struct):
    """One injection, and what came of it if somebody told."""

    at: float
    principal: str
    session: str
    session_type: str
    mode: str
    scorer: str
    injected: tuple[str, ...]
    useful: bool | None = None
    note: str = ""


class ScorerTally(msgspec.Struct):
    """What one scorer did since it was first used."""

    turns: int = 0
    with_cards: int = 0
    useful: int = 0
    useless: int = 0


class LedgerState(msgspec.Struct, frozen=True):
    """A ledger as a restart needs it: keys with times, oldest first."""

    seen: tuple[tuple[str, float], ...] = ()
    injected: tuple[tuple[str, float], ...] = ()


class Ledger:
    """The sessions of the last day, and which of them were given cards."""

    def __init__(self, kept: LedgerState = LedgerState()) -> None:  # noqa: B008 - frozen
        self._seen: OrderedDict[str, float] = OrderedDict(kept.seen)
        self._injected: OrderedDict[str, float] = OrderedDict(kept.injected)

    def count(self, key: str, now: float, *, injected: bool) -> None:
        """Take in one turn of a session."""
        _put(self._seen, key, now)
        if injected:
            _put(self._injected, key, now)
        self._forget(now)

    def share(self, now: float) -> tuple[int, int]:
        """How many sessions were given cards, of how many, in the last day."""
        self._forget(now)
        return len(self._injected), len(self._seen)

    def is_over(self, limit: float, now: float, *, least: int = MIN_SESSIONS) -> bool:
        """Tell whether more than a share of enough sessions were given cards."""
        given, all_ = self.share(now)
        return all_ >= least and given > limit * all_

    def clear(self) -> None:
        """Begin to count anew."""
        self._seen.clear()
        self._injected.clear()

    def kept(self) -> LedgerState:
        """What a restart needs."""
        return LedgerState(tuple(self._seen.items()), tuple(self._injected.items()))

    def _forget(self, now: float) -> None:
        for book in (self._seen, self._injected):
            while book and (next(iter(book.values())) <= now - DAY or len(book) > MAX_SESSIONS):
                key, _ = book.popitem(last=False)
                if book is self._seen:
                    self._injected.pop(key, None)


class _Memory(msgspec.Struct, frozen=True):
    mode: str = ""
    ledger: LedgerState = LedgerState()
    turns: tuple[Turn, ...] = ()
    tallies: dict[str, ScorerTally] = {}


class CardMemory:
    """Kept in memory, and written from time to time; the switch is written at once."""

    def __init__(self, store: BlobRows, mode: str) -> None:
        self._store = store
        self._mode = mode
        self.switch = Switch()
        self.ledger = Ledger()
        self.turns: deque[Turn] = deque(maxlen=MAX_TURNS)
        self.tallies: dict[str, ScorerTally] = {}
        self.figures: Counter[str] = Counter(dict.fromkeys(FIGURES, 0))
        self._is_dirty = False

    async def load(self) -> None:
        """Take over what an earlier run wrote; what is damaged is begun anew, and the log says so.

        Sessions that were counted in another mode got something else: their count begins anew.
        """
        self.switch = await self._read(SWITCH_BLOB, Switch) or Switch()
        memory = await self._read(MEMORY_BLOB, _Memory) or _Memory()
        if memory.mode == self._mode:
            self.ledger = Ledger(memory.ledger)
        self.turns.extend(memory.turns)
        self.tallies = dict(memory.tallies)

    async def _read(self, name: str, kind: type[Any]) -> Any:
        raw = await self._store.blob_get(name)
        if raw is None:
            return None
        try:
            return msgspec.msgpack.decode(raw, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            log.warning("awareness_memory_damaged", blob=name, problem=str(error))
            # A switch that cannot be read might have been off.
            return Switch(on=False, reason="its record is damaged") if kind is Switch else None

    async def turn(self, switch: Switch) -> None:
        """Put the switch, and write that down.

        Raises:
            StoreError: it is put, but a restart would not know.
        """
        self.switch = switch
        await self._store.blob_put(SWITCH_BLOB, msgspec.msgpack.encode(switch))

    def note(self, turn: Turn) -> None:
        """Remember a turn: all are counted, those with cards are kept."""
        self._is_dirty = True
        tally = self._tally(turn.scorer)
        tally.turns += 1
        self.figures["card_turns"] += 1
        if turn.injected:
            is_given = turn.mode == "on"
            self.figures["card_turns_injected" if is_given else "card_turns_monitored"] += 1
            self.figures["cards_injected" if is_given else "cards_monitored"] += len(turn.injected)
        if turn.injected:
            tally.with_cards += 1
            self.turns.append(turn)

    def report(self, principal: str, session: str, *, useful: bool, note: str) -> Turn | None:
        """Take in what came of somebody's latest injection; a second report replaces the first."""
        for turn in reversed(self.turns):
            if (turn.principal, turn.session) == (principal, session):
                tally = self._tally(turn.scorer)
                if turn.useful is not None:
                    _count(tally, turn.useful, -1)
                _count(tally, useful, 1)
                turn.useful, turn.note = useful, note
                self._is_dirty = True
                return turn
        return None

    def _tally(self, scorer: str) -> ScorerTally:
        if scorer not in self.tallies and len(self.tallies) >= MAX_SCORERS:
            self.tallies.pop(next(iter(self.tallies)))
        return self.tallies.setdefault(scorer, ScorerTally())

    async def write(self) -> None:
        """Write what has changed; what cannot be written waits, and the log says so."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        memory = _Memory(self._mode, self.ledger.kept(), tuple(self.turns), self.tallies)
        try:
            await self._store.blob_put(MEMORY_BLOB, msgspec.msgpack.encode(memory))
        except StoreError as error:
            self._is_dirty = True
            log.warning("awareness_not_written", problem=error.message)

    async def keep(self) -> None:
        """Write from time to time until cancelled, and once more then."""
        try:
            while True:
                await anyio.sleep(_WRITE_SECONDS)
                await self.write()
        finally:
            with anyio.move_on_after(_WRITE_SECONDS, shield=True):
                await self.write()


def _count(tally: ScorerTally, useful: bool, by: int) -> None:  # noqa: FBT001 - the value reported
    if useful:
        tally.useful += by
    else:
        tally.useless += by


def _put(book: "OrderedDict[str, float]", key: str, now: float) -> None:
    book[key] = now
    book.move_to_end(key)
