"""Choosing the cards of one conversation, so that nothing about a card can fail the caller."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import anyio.to_thread
import msgspec
import structlog

from remit.features.cards.config import AwarenessConfig, Caller, Question
from remit.features.cards.inject import rendered
from remit.features.cards.library import CardSet
from remit.features.cards.library_cache import CardShelf
from remit.features.cards.rollout import session_key
from remit.features.cards.scorers import DEFAULT, CardScorer, Scorers, assigned
from remit.features.cards.select import select
from remit.features.cards.selection import Injected, Selection, Situation, Skipped

log = structlog.get_logger()

_AT_ONCE = 65_536
"""Characters that are looked at in the loop; more of them in a worker thread."""
_QUICK = frozenset({"words", "keyword_density"})


class CardChooser:
    """Knows the cards, the scorers and the counter."""

    def __init__(
        self,
        config: AwarenessConfig,
        shelf: CardShelf,
        *,
        clock: Callable[[], float],
        make_scorers: Callable[[], Scorers],
        count: Callable[[str], int],
    ) -> None:
        """Wire the parts; nothing is loaded yet.

        Args:
            config: what the operator says.
            shelf: the cards in force.
            clock: the wall clock.
            make_scorers: loads what can be chosen to score with; called once.
            count: counts tokens; slow the first time.
        """
        self._config = config
        self._shelf = shelf
        self._clock = clock
        self._make_scorers = make_scorers
        self._scorers: Scorers | None = None
        self._count = count
        self._has_counted = False

    async def choose(self, caller: Caller, question: Question) -> tuple[Selection, str]:
        """What is given to a conversation, and which scorer said so."""
        name = self._assigned(caller, question)
        try:
            name, scorer = await self._scorer(name)
            return await self._choose(caller, question, scorer, quick=name in _QUICK), name
        except Exception:  # cards are a help: without them the conversation goes on
            log.exception("card_selection_failed", scorer=name)
            return Selection(), name

    async def _choose(
        self, caller: Caller, question: Question, scorer: CardScorer, *, quick: bool
    ) -> Selection:
        found = await self._shelf.cards()
        options = self._config.options()
        choose = partial(
            select,
            found.cards,
            question.messages,
            self._situation(caller, question, found),
            scorer,
            options,
            budget=question.token_budget,
            overhead=await self._counted(rendered([])),
        )
        looked_at = sum(map(len, question.messages[-options.window :]))
        if quick and looked_at <= _AT_ONCE:
            return await self._fitted(choose())
        return await self._fitted(await anyio.to_thread.run_sync(choose, abandon_on_cancel=True))

    async def _fitted(self, selection: Selection) -> Selection:
        """The selection, counted with titles and fence; the last ones go if that is too much."""
        while selection.injected:
            whole = await self._counted(text_of(selection.injected))
            if whole <= selection.budget:
                return msgspec.structs.replace(selection, total_tokens=whole)
            selection = _shortened(selection, whole - selection.budget)
        return selection

    async def _counted(self, text: str) -> int:
        if not self._has_counted:  # a tokenizer may have to be loaded
            found = await anyio.to_thread.run_sync(self._count, text)
            self._has_counted = True
            return found
        return self._count(text)

    def _situation(self, caller: Caller, question: Question, found: CardSet) -> Situation:
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

    def _assigned(self, caller: Caller, question: Question) -> str:
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


def _shortened(selection: Selection, over: int) -> Selection:
    """The selection without as many of the last cards as have so many tokens."""
    kept, left_out = list(selection.injected), list(selection.skipped)
    while kept and over > 0:
        last = kept.pop()
        over -= max(1, last.tokens)
        left_out.append(
            Skipped(
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


def key_of(caller: Caller, question: Question) -> str:
    """What stands for a session, whoever else has one of that name."""
    return session_key(caller.principal, question.session)


def text_of(cards: Sequence[Injected]) -> str:
    """The text of the file that is injected; empty without cards."""
    return rendered([(one.name, one.text) for one in cards]) if cards else ""
