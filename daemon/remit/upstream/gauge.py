"""The figures of a link: its state, and how its calls went."""

from collections.abc import Callable

import anyio

from remit.upstream.shapes import Health, State

_WEIGHT = 0.2


class Gauge:
    """How a server is; whoever waits for another state is woken by each change."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed = anyio.Event()
        self._since = clock()
        self._retry_at: float | None = None
        self.state: State = "idle"
        self.reason = ""
        self.restarts = 0
        self.calls = 0
        self.failures = 0
        self.last_error = ""
        self.protocol = ""
        self.server_info = ""
        self.latency: float | None = None

    def turn(self, state: State, reason: str = "", *, retry_after: float | None = None) -> None:
        """Come into a state."""
        self.state, self.reason, self._since = state, reason, self._clock()
        self._retry_at = None if retry_after is None else anyio.current_time() + retry_after
        self._changed.set()
        self._changed = anyio.Event()

    async def next_turn(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def answered(self, seconds: float) -> None:
        """A call was answered."""
        before = seconds if self.latency is None else self.latency
        self.latency = before + _WEIGHT * (seconds - before)

    def failed(self, reason: str) -> None:
        """A call got no answer."""
        self.failures += 1
        self.last_error = reason

    @property
    def retry_after(self) -> float | None:
        """Seconds until the next start, if one is planned."""
        if self._retry_at is None:
            return None
        return round(max(0.0, self._retry_at - anyio.current_time()), 3)

    def health(self) -> Health:
        """Everything, as it is now."""
        return Health(
            state=self.state,
            reason=self.reason,
            since=self._since,
            restarts=self.restarts,
            calls=self.calls,
            failures=self.failures,
            last_error=self.last_error,
            protocol=self.protocol,
            server_info=self.server_info,
            latency=self.latency,
            retry_after=self.retry_after if self._retry_at is not None else None,
        )
