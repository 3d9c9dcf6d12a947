"""Cards for callers of the daemon: chosen, put among their files, counted and written down.

Nothing here may fail a caller: a card that cannot be used is left out and reported, and when all of
it fails the files go back as they came.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import structlog

from remit.errors import StoreError
from remit.features.cards.chooser import CardChooser, key_of, text_of
from remit.features.cards.config import AwarenessConfig, Caller, Chosen, Mode, Question
from remit.features.cards.folder import ReadyCard
from remit.features.cards.inject import injected
from remit.features.cards.library_cache import CardShelf
from remit.features.cards.memory import AwarenessMemory, Switch, Turn
from remit.features.cards.rollout import is_chosen, share_of
from remit.features.cards.selection import Injected
from remit.kernel.audit.log import Auditor
from remit.model.event import Service

log = structlog.get_logger()

INJECT_EVENT = "awareness:inject"
STOPPED_EVENT = "awareness:stopped"
DAEMON = "daemon"

Tell = Callable[[str, Any, str], int]


class Awareness(Service):
    """Answers for one daemon."""

    def __init__(  # noqa: PLR0913 - one argument a part
        self,
        config: AwarenessConfig,
        shelf: CardShelf,
        chooser: CardChooser,
        memory: AwarenessMemory,
        auditor: Auditor,
        *,
        tell: Tell,
        clock: Callable[[], float],
    ) -> None:
        """Wire the parts; nothing is read yet.

        Args:
            config: what the operator says.
            shelf: the cards in force.
            chooser: chooses among them.
            memory: the switch, the sessions of a day, the latest injections.
            auditor: is told of each injection.
            tell: pushes an event to those who may see it.
            clock: the wall clock, which must not go back while this runs.
        """
        self.config = config
        self.shelf = shelf
        self._chooser = chooser
        self.memory = memory
        self._auditor = auditor
        self._tell = tell
        self._clock = clock
        self._switching = anyio.Lock()

    # ---- questions ----

    @property
    def mode(self) -> Mode:
        """What happens to a session that is in the rollout."""
        stopped = self.config.mode == "on" and not self.memory.switch.on
        return "stopped" if stopped else self.config.mode

    def status(self) -> dict[str, Any]:
        """How it goes, for those who see everything."""
        given, sessions = self.memory.ledger.share(self._clock())
        switch = self.memory.switch
        return {
            "mode": self.mode,
            "switch": {"on": switch.on, "by": switch.by, "at": switch.at, "reason": switch.reason},
            "day": {"sessions": sessions, "injected": given, "limit": self.config.kill_share},
            "scorer": self.config.scorer,
            "second_scorer": self.config.second_scorer,
        }

    async def select(self, caller: Caller, question: Question) -> Chosen:
        """What a conversation calls for; nothing is counted or written down."""
        mode = self._mode_for(caller, question)
        return Chosen(mode=mode) if mode == "off" else await self._chosen(caller, question, mode)

    async def inject(
        self, caller: Caller, question: Question, files: Sequence[Mapping[str, Any]]
    ) -> tuple[Chosen, list[dict[str, Any]]]:
        """The files with the cards among them, or as they came.

        Raises:
            InvalidDataError: an entry of the files is none.
        """
        injected(files, "", self.config.position)  # refuses what is no list of files in any mode
        same = [dict(file) for file in files]
        mode, key = self._mode_for(caller, question), key_of(caller, question)
        if mode == "held_back":
            self.memory.ledger.count(key, self._clock(), injected=False)
        if mode not in ("on", "monitor"):
            return Chosen(mode=mode), same
        chosen = await self._chosen(caller, question, mode)
        if await self._is_too_many(key, chosen):
            return Chosen(mode="stopped"), same
        if not await self._write(caller, question, chosen):
            return Chosen(mode=mode, scorer=chosen.scorer), same
        self._note(caller, question, chosen)
        if mode == "monitor":
            return chosen, same
        text = text_of(chosen.selection.injected)
        return chosen, injected(files, text, self.config.position)

    async def _chosen(self, caller: Caller, question: Question, mode: Mode) -> Chosen:
        selection, scorer = await self._chooser.choose(caller, question)
        return Chosen(mode=mode, selection=selection, scorer=scorer)

    def _mode_for(self, caller: Caller, question: Question) -> Mode:
        share = share_of(self.config.rollout, question.session_type)
        if self.mode in ("on", "monitor") and not is_chosen(key_of(caller, question), share):
            return "held_back"
        return self.mode

    async def visible(self, caller: Caller) -> dict[str, ReadyCard]:
        """The cards that a caller may be given, by id; without those in quarantine."""
        return {
            one.card.id: one
            for one in (await self.shelf.cards()).cards
            if not one.is_quarantined and caller.may_have(one.card)
        }

    # ---- counting and writing ----

    async def _is_too_many(self, key: str, chosen: Chosen) -> bool:
        """Count a session, and stop everything when that was one too many.

        What the operator forces on every session is no sign of cards that match too much.
        """
        ledger, now = self.memory.ledger, self._clock()
        by_match = any(not one.forced for one in chosen.selection.injected)
        ledger.count(key, now, injected=by_match)
        if chosen.mode != "on" or not ledger.is_over(self.config.kill_share, now):
            return False
        given, sessions = ledger.share(now)
        limit = self.config.kill_share
        reason = f"{given} of {sessions} sessions in a day got a card, more than {limit:.0%}"
        await self.switch(on=False, by=DAEMON, reason=reason)
        log.error("awareness_stopped", reason=reason, hint="remit call awareness:switch on=true")
        data = {"reason": reason, "sessions": sessions, "injected": given}
        self._tell(STOPPED_EVENT, data, DAEMON)
        return True

    async def switch(self, *, on: bool, by: str, reason: str) -> None:
        """Stop injection, or let it go on with a count that begins anew."""
        async with self._switching:
            if on and not self.memory.switch.on:
                self.memory.ledger.clear()
            try:
                await self.memory.turn(Switch(on, by, self._clock(), reason))
            except StoreError as error:
                if by != DAEMON:
                    raise
                log.warning("awareness_switch_not_kept", problem=error.message)

    async def _write(self, caller: Caller, question: Question, chosen: Chosen) -> bool:
        """Write the audit line; what cannot be written down is not injected."""
        given = chosen.selection.injected
        if not given:
            return True
        details = {
            "cards": [_audited(one) for one in given],
            "total_tokens": chosen.selection.total_tokens,
            "mode": chosen.mode,
            "scorer": chosen.scorer,
            "session": question.session,
            "session_type": question.session_type,
        }
        try:
            await self._auditor.record(
                principal=caller.principal,
                event=INJECT_EVENT,
                outcome="allowed",
                reason="injected" if chosen.mode == "on" else "monitored",
                decision=caller.decision,
                revision=caller.revision,
                details=details,
            )
        except StoreError as error:
            log.warning("audit_failed", problem=error.message, decision=caller.decision)
            return False
        log.info("cards_injected", principal=caller.principal, **details)
        return True

    def _note(self, caller: Caller, question: Question, chosen: Chosen) -> None:
        self.memory.note(
            Turn(
                at=self._clock(),
                principal=caller.principal,
                session=question.session,
                session_type=question.session_type,
                mode=chosen.mode,
                scorer=chosen.scorer,
                injected=tuple(one.id for one in chosen.selection.injected),
            )
        )


def _audited(one: Injected) -> dict[str, Any]:
    return {"id": one.id, "relevance": round(one.relevance, 4), "tokens": one.tokens}
