"""What awareness remembers over a restart: the switch, a day of sessions, the latest injections."""

from collections import deque
from typing import Any

import anyio
import msgspec
import structlog

from remit.errors import StoreError
from remit.features.cards.rollout import Kept, Ledger
from remit.kernel.store.protocol import BlobStore

log = structlog.get_logger()

MEMORY_BLOB = "awareness"
SWITCH_BLOB = "awareness_switch"
MAX_TURNS = 1_000
MAX_SCORERS = 32
_WRITE_SECONDS = 5.0


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


class Tally(msgspec.Struct):
    """What one scorer did since it was first used."""

    turns: int = 0
    with_cards: int = 0
    useful: int = 0
    useless: int = 0


class _Memory(msgspec.Struct, frozen=True):
    mode: str = ""
    ledger: Kept = Kept()
    turns: tuple[Turn, ...] = ()
    tallies: dict[str, Tally] = {}


class AwarenessMemory:
    """Kept in memory, and written from time to time; the switch is written at once."""

    def __init__(self, store: BlobStore, mode: str) -> None:
        self._store = store
        self._mode = mode
        self.switch = Switch()
        self.ledger = Ledger()
        self.turns: deque[Turn] = deque(maxlen=MAX_TURNS)
        self.tallies: dict[str, Tally] = {}
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

    def _tally(self, scorer: str) -> Tally:
        if scorer not in self.tallies and len(self.tallies) >= MAX_SCORERS:
            self.tallies.pop(next(iter(self.tallies)))
        return self.tallies.setdefault(scorer, Tally())

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


def _count(tally: Tally, useful: bool, by: int) -> None:  # noqa: FBT001 - the value reported
    if useful:
        tally.useful += by
    else:
        tally.useless += by
