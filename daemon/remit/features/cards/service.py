"""Cards for callers of the daemon: selected, put among their files, counted and written down.

Nothing here may fail a caller: a card that cannot be used is left out and reported, and when all of
it fails the files go back as they came.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import structlog

from remit.errors import StoreError
from remit.features.cards.library import CardSet
from remit.features.cards.ready_card import ReadyCard
from remit.features.cards.scorers import (
    DEFAULT,
    CardScorer,
    Scorers,
    assigned,
    is_chosen,
    session_key,
    share_of,
)
from remit.features.cards.select import (
    CardAnswer,
    CardsConfig,
    InjectedCard,
    Mode,
    Selection,
    Situation,
    SkippedCard,
    select,
)
from remit.features.cards.store import CardCache, CardMemory, Switch, Turn
from remit.features.cards.views import Question, Recipient, injected, rendered
from remit.kernel.audit.log import AuditLog
from remit.model.event import Service

log = structlog.get_logger()

INJECT_EVENT = "awareness:inject"
STOPPED_EVENT = "awareness:stopped"
DAEMON = "daemon"

Tell = Callable[[str, Any, str], int]
_AT_ONCE = 65_536
"""Characters that are looked at in the loop; more of them in a worker thread."""
_MOST_SKIPPED = 50
_QUICK = frozenset({"words", "keyword_density"})


class CardSelector:
    """Knows the cards, the scorers and the counter."""

    def __init__(
        self,
        config: CardsConfig,
        cache: CardCache,
        *,
        clock: Callable[[], float],
        make_scorers: Callable[[], Scorers],
        count: Callable[[str], int],
    ) -> None:
        """Wire the parts; nothing is loaded yet.

        Args:
            config: what the operator says.
            cache: the cards in force.
            clock: the wall clock.
            make_scorers: loads what can be chosen to score with; called once.
            count: counts tokens; slow the first time.
        """
        self._config = config
        self._cache = cache
        self._clock = clock
        self._make_scorers = make_scorers
        self._scorers: Scorers | None = None
        self.count = count
        self._has_counted = False

    async def select(self, caller: Recipient, question: Question) -> tuple[Selection, str]:
        """What is given to a conversation, and which scorer said so."""
        name = self._assigned(caller, question)
        try:
            name, scorer = await self._scorer(name)
            return await self._select(caller, question, scorer, quick=name in _QUICK), name
        except Exception:  # cards are a help: without them the conversation goes on
            log.exception("card_selection_failed", scorer=name)
            return Selection(), name

    async def _select(
        self, caller: Recipient, question: Question, scorer: CardScorer, *, quick: bool
    ) -> Selection:
        found = await self._cache.cards()
        options = self._config.options()
        choice = partial(
            select,
            found.cards,
            question.messages,
            self._situation(caller, question, found),
            scorer,
            options,
            budget=question.token_budget,
            overhead=await self.counted(rendered([])),
        )
        looked_at = sum(map(len, question.messages[-options.window :]))
        if quick and looked_at <= _AT_ONCE:
            return await self._fitted(choice())
        return await self._fitted(await anyio.to_thread.run_sync(choice, abandon_on_cancel=True))

    async def _fitted(self, selection: Selection) -> Selection:
        """The selection, counted with titles and fence; the last ones go if that is too much."""
        while selection.injected:
            whole = await self.counted(text_of(selection.injected))
            if whole <= selection.budget:
                return msgspec.structs.replace(selection, total_tokens=whole)
            selection = _shortened(selection, whole - selection.budget)
        return selection

    async def counted(self, text: str) -> int:
        """How many tokens a text has."""
        if not self._has_counted:  # a tokenizer may have to be loaded
            found = await anyio.to_thread.run_sync(self.count, text)
            self._has_counted = True
            return found
        return self.count(text)

    def _situation(self, caller: Recipient, question: Question, found: CardSet) -> Situation:
        held = caller.capabilities
        if caller.everything:
            held = frozenset(name for one in found.cards for name in one.card.capabilities)
        now = datetime.fromtimestamp(self._clock()).astimezone()
        return Situation(
            session_type=question.session_type,
            user_tier=question.user_tier,
            environment=question.environment,
            capabilities=held,
            minute_of_day=now.hour * 60 + now.minute,
        )

    def _assigned(self, caller: Recipient, question: Question) -> str:
        first, second = self._config.scorer, self._config.second_scorer
        if not second:
            return first
        return assigned(key_of(caller, question), first, second, self._config.second_share)

    async def _scorer(self, name: str) -> tuple[str, CardScorer]:
        if self._scorers is None:
            self._scorers = await anyio.to_thread.run_sync(self._make_scorers)
            self._report(self._scorers)
        known = self._scorers.by_name
        return (name, known[name]) if name in known else (DEFAULT, known[DEFAULT])

    def _report(self, scorers: Scorers) -> None:
        for problem in scorers.problems:
            log.warning("card_scorer_left_out", problem=problem.message, hint=problem.hint)
        for name in filter(None, (self._config.scorer, self._config.second_scorer)):
            if name not in scorers.by_name:
                known = ", ".join(sorted(scorers.by_name))
                log.error("no_such_card_scorer", scorer=name, used=DEFAULT, known=known)


class Cards(Service):
    """Answers for one daemon."""

    def __init__(  # noqa: PLR0913 - one argument a part
        self,
        config: CardsConfig,
        cache: CardCache,
        selector: CardSelector,
        memory: CardMemory,
        audit_log: AuditLog,
        *,
        tell: Tell,
        clock: Callable[[], float],
    ) -> None:
        """Wire the parts; nothing is read yet.

        Args:
            config: what the operator says.
            cache: the cards in force.
            selector: selects among them.
            memory: the switch, the sessions of a day, the latest injections.
            audit_log: is told of each injection.
            tell: pushes an event to those who may see it.
            clock: the wall clock, which must not go back while this runs.
        """
        self.config = config
        self.cache = cache
        self._selector = selector
        self.memory = memory
        self._audit_log = audit_log
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

    async def select(self, caller: Recipient, question: Question) -> CardAnswer:
        """What a conversation calls for; nothing is counted or written down."""
        mode = self._mode_for(caller, question)
        return (
            CardAnswer(mode=mode) if mode == "off" else await self._chosen(caller, question, mode)
        )

    async def inject(
        self, caller: Recipient, question: Question, files: Sequence[Mapping[str, Any]]
    ) -> tuple[CardAnswer, list[dict[str, Any]]]:
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
            return CardAnswer(mode=mode), same
        chosen = await self._chosen(caller, question, mode)
        if await self._is_too_many(key, chosen):
            return CardAnswer(mode="stopped"), same
        if not await self._write(caller, question, chosen):
            return CardAnswer(mode=mode, scorer=chosen.scorer), same
        self._note(caller, question, chosen)
        if mode == "monitor":
            return chosen, same
        text = text_of(chosen.selection.injected)
        return chosen, injected(files, text, self.config.position)

    async def _chosen(self, caller: Recipient, question: Question, mode: Mode) -> CardAnswer:
        selection, scorer = await self._selector.select(caller, question)
        return CardAnswer(mode=mode, selection=selection, scorer=scorer)

    def _mode_for(self, caller: Recipient, question: Question) -> Mode:
        share = share_of(self.config.rollout, question.session_type)
        if self.mode in ("on", "monitor") and not is_chosen(key_of(caller, question), share):
            return "held_back"
        return self.mode

    async def count(self, text: str) -> int:
        """How many tokens a text has."""
        return await self._selector.counted(text)

    async def visible(self, caller: Recipient) -> dict[str, ReadyCard]:
        """The cards that a caller may be given, by id; without those in quarantine."""
        return {
            one.card.id: one
            for one in (await self.cache.cards()).cards
            if not one.is_quarantined and caller.may_have(one.card)
        }

    # ---- counting and writing ----

    async def _is_too_many(self, key: str, chosen: CardAnswer) -> bool:
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

    async def _write(self, caller: Recipient, question: Question, chosen: CardAnswer) -> bool:
        """Write the audit line; what cannot be written down is not injected."""
        given = chosen.selection.injected
        if not given or self.config.log_level == "none":
            return True
        is_detailed = self.config.log_level == "detailed"
        details = {
            "cards": [_detailed(one) if is_detailed else _audited(one) for one in given],
            "total_tokens": chosen.selection.total_tokens,
            "mode": chosen.mode,
            "scorer": chosen.scorer,
            "session": question.session,
            "session_type": question.session_type,
        }
        if is_detailed:
            details["skipped"] = [
                {"id": one.id, "reason": one.reason, "relevance": round(one.relevance, 4)}
                for one in chosen.selection.skipped[:_MOST_SKIPPED]
            ]
        try:
            await self._audit_log.record(
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

    def _note(self, caller: Recipient, question: Question, chosen: CardAnswer) -> None:
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


def _shortened(selection: Selection, over: int) -> Selection:
    """The selection without as many of the last cards as have so many tokens."""
    kept, left_out = list(selection.injected), list(selection.skipped)
    while kept and over > 0:
        last = kept.pop()
        over -= max(1, last.tokens)
        left_out.append(
            SkippedCard(
                id=last.id,
                reason="over_budget",
                relevance=last.relevance,
                tokens=last.tokens,
                matches=last.matches,
            )
        )
    return Selection(
        injected=tuple(kept),
        skipped=tuple(sorted(left_out, key=lambda one: one.id)),
        budget=selection.budget,
        truncated=True,
    )


def key_of(caller: Recipient, question: Question) -> str:
    """What stands for a session, whoever else has one of that name."""
    return session_key(caller.principal, question.session)


def text_of(cards: Sequence[InjectedCard]) -> str:
    """The text of the file that is injected; empty without cards."""
    return rendered([(one.name, one.text) for one in cards]) if cards else ""


def _detailed(one: InjectedCard) -> dict[str, Any]:
    found = [match.keyword for match in one.matches]  # words of the card, and of nobody else
    return _audited(one) | {"version": one.version, "matches": found, "forced": one.forced}


def _audited(one: InjectedCard) -> dict[str, Any]:
    return {"id": one.id, "relevance": round(one.relevance, 4), "tokens": one.tokens}
