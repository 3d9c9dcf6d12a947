"""What a daemon keeps of cards: those in force, the decisions about them, and what came of them.

Decisions are rows of the store, and each counts for one content of a card only. The switch is
written at once; a day of sessions and the latest injections from time to time.
"""

import secrets
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import structlog

from remit.errors import ConflictError, StoreError
from remit.features.reviews.desk import stored_reviews
from remit.features.reviews.store import ReviewRows
from remit.kernel.store.records import Review, ReviewStatus
from remit.kernel.store.rows import BlobRows
from remit.model.event import Service

CARD = "card"
"""The kind of the review of a card that looks suspicious."""
log = structlog.get_logger()

DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError)
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


def _count(tally: ScorerTally, useful: bool, by: int) -> None:  # noqa: FBT001 - the value reported
    if useful:
        tally.useful += by
    else:
        tally.useless += by


def _put(book: "OrderedDict[str, float]", key: str, now: float) -> None:
    book[key] = now
    book.move_to_end(key)
