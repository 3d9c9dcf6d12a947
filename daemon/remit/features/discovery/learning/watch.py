"""The calls that follow a question: which of them tell what served it.

A call counts for the latest question of the same caller in the same session that showed it, within
`_CALLS` calls and `_WATCHED` seconds, and for no other: what was not shown was called for a reason
that nobody here knows. Housekeeping never counts.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from remit.model.descriptor import tool_id
from remit.model.event import Service
from remit.text.words import words

MAX_REQUEST = 300
"""Characters of a request that are kept."""
_WATCHED = 600.0
_CALLS = 16
_QUESTIONS = 4
"""Questions of one caller in one session that are watched at once."""
_STEPS = 8
"""Different descriptors that one question can teach about."""
_CALLERS = 10_000
_UPKEEP = (
    *("audit:", "awareness:", "bill:", "capability:", "composition:", "config:", "discovery:"),
    *("event:", "extension:", "key:", "permission:", "review:", "session:", "skill:", "system:"),
    *("upstream:", "agent:list", "agent:runtime", "agent:status"),
)
"""What looks after remit itself, or tells about it: it answers no request in particular."""
_UPKEEP_IDS = tuple(map(tool_id, _UPKEEP))
_FAULTS = frozenset({"denied", "internal", "store_unavailable", "timeout", "tool_failed"})
"""Calls that failed or were refused; with other codes it was the data, or the moment."""


class Learner(Protocol):
    """Whoever is told what served a request, and what failed."""

    enabled: bool

    def served(self, caller: str, descriptor: str, request: str, beside: list[str]) -> None:
        """Something that was shown for a request did its work."""

    def count(self, caller: str, descriptor: str, *, failed: bool) -> None:
        """A call worked, or it failed or was refused."""


class _Question(msgspec.Struct):
    """What one caller asked in one session, and what it did since."""

    request: str
    shown: frozenset[str]
    at: float
    calls: int = 0
    used: list[str] = []


class Watch(Service):
    """Remembers questions for a while, and tells a learner what came of them."""

    def __init__(self, learner: Learner, clock: Callable[[], float]) -> None:
        self._learner = learner
        self._clock = clock
        self.waiting: dict[tuple[str, str], list[_Question]] = {}
        """Empty when nobody asked: then there is nothing to watch, and that costs nothing."""

    def asked(self, caller: str, session: str, request: str, shown: Iterable[str]) -> None:
        """Somebody asked and was shown something; calls of that may belong to this question."""
        request, ids = shortened(request), frozenset(shown)
        if not self._learner.enabled or not ids or not words(request):
            return
        before = self.waiting.pop((caller, session), [])
        if len(self.waiting) >= _CALLERS:
            self.waiting.pop(next(iter(self.waiting)))
        question = _Question(request, ids, self._clock())
        self.waiting[caller, session] = [*before[1 - _QUESTIONS :], question]

    def refused(self, caller: str, session: str | None, event: str) -> None:
        """A call was refused at the door; that matters where the caller was shown the event."""
        if self.waiting:
            self.answered(caller, session, event, "denied")

    def answered(
        self,
        caller: str,
        session: str | None,
        event: str,
        code: str = "",
        _seconds: float | None = None,
    ) -> None:
        """A call was answered, well or with an error code."""
        if (caller, session or "") not in self.waiting or event.startswith(_UPKEEP):
            return
        descriptor = tool_id(event)
        question = self._question(caller, session or "", descriptor)
        if question is None or (code and code not in _FAULTS):
            return
        self._learner.count(caller, descriptor, failed=bool(code))
        if code or descriptor in question.used or len(question.used) >= _STEPS:
            return
        self._learner.served(caller, descriptor, question.request, question.used)
        question.used.append(descriptor)

    def _question(self, caller: str, session: str, descriptor: str) -> _Question | None:
        """The latest question that showed a descriptor; each call counts against all of them."""
        now, left = self._clock(), []
        for question in self.waiting[caller, session]:
            question.calls += 1
            if question.calls <= _CALLS and now - question.at <= _WATCHED:
                left.append(question)
        if left:
            self.waiting[caller, session] = left
        else:
            del self.waiting[caller, session]
        return next((one for one in reversed(left) if descriptor in one.shown), None)

    def ended(self, caller: str) -> None:
        """Forget the questions of somebody who is gone."""
        for asker in [asker for asker in self.waiting if asker[0] == caller]:
            del self.waiting[asker]


def is_upkeep(descriptor: str) -> bool:
    """Tell whether this is housekeeping, by the id of a descriptor."""
    return descriptor.startswith(_UPKEEP_IDS)


def shortened(request: str) -> str:
    """A request as far as it is kept, on one level of blanks."""
    return " ".join(request[: 4 * MAX_REQUEST].split())[:MAX_REQUEST]
