"""How much each agent uses: calls a minute and calls at once."""

from collections import deque
from collections.abc import Callable

from remit.model.limits import Limits

_MINUTE = 60.0
_SOON = 0.1


class Meter:
    """Counts the calls of agents that have limits; those without cost nothing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start counting.

        Args:
            clock: a clock that never jumps; the wall clock may.
        """
        self._clock = clock
        self._calls: dict[str, deque[float]] = {}
        self._running: dict[str, int] = {}

    def admit(self, agent: str, limits: Limits) -> tuple[str, float] | None:
        """Count a call, or name the limit that it would pass and the seconds to wait."""
        at_once = limits.max_concurrent
        if at_once is not None and self._running.get(agent, 0) >= at_once:
            return "max_concurrent", _SOON
        if limits.max_calls_per_minute is None:
            return None
        now = self._clock()
        calls = self._calls.setdefault(agent, deque())
        while calls and calls[0] <= now - _MINUTE:
            calls.popleft()
        if len(calls) >= limits.max_calls_per_minute:
            wait = calls[0] + _MINUTE - now if calls else _MINUTE
            return "max_calls_per_minute", round(max(wait, 0.001), 3)
        calls.append(now)
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

    def forget(self, agent: str) -> None:
        """Drop what was counted for an agent that is gone."""
        self._calls.pop(agent, None)
        self._running.pop(agent, None)
