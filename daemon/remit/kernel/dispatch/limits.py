"""Limits of callers: calls and denials a minute, and how many of their calls run at once."""

import math
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from remit.model.limits import Limits

_MINUTE = 60.0
_SOON = 0.1
_ROUNDING = 1e-6
_SWEEP_AT = 1024
DENIALS_PER_MINUTE = 600


class RateLimiter:
    """Counts the calls of agents that have limits; those without cost nothing."""

    def __init__(
        self, clock: Callable[[], float], *, denials_per_minute: int = DENIALS_PER_MINUTE
    ) -> None:
        """Start counting.

        Args:
            clock: a clock that never jumps; the wall clock may.
            denials_per_minute: how many denials everybody has, with or without limits.
        """
        self._clock = clock
        self._pause = _MINUTE / denials_per_minute
        self._denied: dict[str, float] = {}
        self._calls: dict[str, deque[float]] = {}
        self._running: dict[str, int] = {}
        self._sweep_at = self._sweep_denied_at = _SWEEP_AT

    def admit(self, agent: str, limits: Limits) -> tuple[str, float] | None:
        """Count a call, or name the limit that it would pass and the seconds to wait."""
        passed = self.reached(agent, limits)
        if passed is not None or limits.max_calls_per_minute is None:
            return passed
        now = self._clock()
        calls = self._calls.get(agent)
        if calls is None:
            self._sweep(now)
            calls = self._calls[agent] = deque()
        calls.append(now)
        return None

    def reached(self, agent: str, limits: Limits) -> tuple[str, float] | None:
        """The limit that the next call would pass, and the seconds to wait; nothing is counted."""
        at_once = limits.max_concurrent
        if at_once is not None and self._running.get(agent, 0) >= at_once:
            return "max_concurrent", _SOON
        if limits.max_calls_per_minute is None:
            return None
        now, calls = self._clock(), self._calls.get(agent, deque())
        while calls and calls[0] <= now - _MINUTE:
            calls.popleft()
        if len(calls) >= limits.max_calls_per_minute:
            wait = calls[0] + _MINUTE - now if calls else _MINUTE
            return "max_calls_per_minute", round(max(wait, 0.001), 3)
        return None

    def deny(self, agent: str) -> float | None:
        """Count a denial, or tell the seconds to wait when there were too many.

        A minute's denials may come at once; then there is one more as each becomes due.
        """
        now = self._clock()
        if agent not in self._denied and len(self._denied) >= self._sweep_denied_at:
            self._denied = {name: at for name, at in self._denied.items() if at > now}
            self._sweep_denied_at = max(_SWEEP_AT, 2 * len(self._denied))
        # When all that were counted have become due: one number an agent.
        due = max(self._denied.get(agent, now), now) + self._pause
        wait = due - now - _MINUTE
        if wait > _ROUNDING:
            return round(max(wait, 0.001), 3)
        self._denied[agent] = due
        return None

    def begin(self, agent: str) -> None:
        """Note that a call of this agent runs."""
        self._running[agent] = self._running.get(agent, 0) + 1

    def end(self, agent: str) -> None:
        """Note that it has ended."""
        left = self._running.get(agent, 0) - 1
        if left > 0:
            self._running[agent] = left
        else:
            self._running.pop(agent, None)

    def running(self, agent: str) -> int:
        """How many calls of this agent run now."""
        return self._running.get(agent, 0)

    def calls(self, agent: str) -> int | None:
        """How many calls of this agent the last minute saw; None when they are not counted."""
        calls = self._calls.get(agent)
        if calls is None:
            return None
        since = self._clock() - _MINUTE
        return sum(1 for at in calls if at > since)

    def _sweep(self, now: float) -> None:
        """Drop the counts of agents that are gone or quiet, before they pile up."""
        if len(self._calls) < self._sweep_at:
            return
        since = now - _MINUTE
        quiet = [name for name, calls in self._calls.items() if not calls or calls[-1] <= since]
        for name in quiet:
            del self._calls[name]
        self._sweep_at = max(_SWEEP_AT, 2 * len(self._calls))


class Running:
    """The calls of a face that are under way, by the name of their caller.

    So they can be ended when the caller is shut out.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._scopes: dict[str, dict[anyio.CancelScope, str]] = {}

    def is_full(self, name: str) -> bool:
        """Tell whether a caller has as many calls under way as it may."""
        return len(self._scopes.get(name, ())) >= self.limit

    @contextmanager
    def held(
        self, name: str, *, mark: str = "", deadline: float = math.inf
    ) -> Generator[anyio.CancelScope]:
        """Run something for a caller; the scope swallows its end when the caller is shut out.

        Args:
            name: the caller.
            mark: by what it came in, such as a token.
            deadline: when it is shut out at the latest.
        """
        scope = anyio.CancelScope(deadline=deadline)
        self._scopes.setdefault(name, {})[scope] = mark
        try:
            with scope:
                yield scope
        finally:
            left = self._scopes[name]
            del left[scope]
            if not left:
                del self._scopes[name]

    def end(self, name: str, *, mark: str | None = None) -> int:
        """End what runs for a caller, or only what has this mark; tell how many calls that were."""
        held = self._scopes.get(name, {})
        scopes = [scope for scope, given in held.items() if mark in (None, given)]
        for scope in scopes:
            scope.cancel()
        return len(scopes)
