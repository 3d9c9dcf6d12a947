"""One upstream server, supervised: started when it is needed, restarted when it fails.

Promises:
- Whoever calls waits no longer than the server's `start_timeout` for its start, and while a restart
  is put off not at all.
- At most `concurrency` calls are under way, at most `ClientLimits.waiting` wait, one more is
  refused.
- A server that floods us with changes is asked for its list once a second, and less often the more
  it cries wolf.
- When `run` ends, everything that the server started has ended.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from remit.errors import LimitError, RemitError, UnavailableError, with_code
from remit.features.upstreams.client.state import (
    CallOutcome,
    ClientLimits,
    Health,
    Listing,
    Progress,
    ServerGoneError,
)
from remit.features.upstreams.client.supervisor import HealthMonitor, Supervisor
from remit.model.upstream import Upstream

if TYPE_CHECKING:
    from remit.features.upstreams.client.connection import ServerConnection

_GOODBYE_SECONDS = 3.0
"""A call that was cut off waits so long to hear why."""
_WEIGHT = 0.2
"""Of the newest call in the latency."""


class UpstreamClient:
    """One upstream server. `run` keeps it; everything else may be called from any task."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        secret: Callable[[str], str | None],
        on_listed: Callable[[Listing], Awaitable[None]],
        clock: Callable[[], float] = time.time,
        guard: Sequence[str] = (),
        limits: ClientLimits | None = None,
    ) -> None:
        """Nothing starts before `run`.

        Args:
            upstream: how it is reached.
            secret: the value of a secret by its name, read anew at each start; None: there is none.
            on_listed: told every list of tools: after each start, at each `refresh`, and when the
                server has changed it. It is awaited in the task of `run`, one at a time.
            clock: for `Health.since`.
            guard: put before the full command of a server that is a process, so that it dies with
                the daemon: see `kernel/processes/guard.py`.
            limits: how much is taken.
        """
        self.upstream = upstream
        self._limits = limits or ClientLimits()
        self._monitor = HealthMonitor(clock)
        self._supervisor = Supervisor(
            upstream,
            secret=secret,
            on_listed=on_listed,
            guard=guard,
            limits=self._limits,
            monitor=self._monitor,
        )
        self._slots = anyio.Semaphore(upstream.concurrency)
        self._inside = 0
        self._calls = 0
        self._failures = 0
        self._latency: float | None = None

    @property
    def health(self) -> Health:
        """How it is now."""
        return msgspec.structs.replace(
            self._monitor.health(),
            calls=self._calls,
            failures=self._failures,
            latency=self._latency,
        )

    async def run(self) -> None:
        """Keep the server until cancelled; one task runs this, once.

        An eager one is started at once, a lazy one at the first `call` or `refresh`; from then on
        it is kept running.
        """
        await self._supervisor.run()

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        progress: Progress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - it tells the server too
        check: Callable[[], None] | None = None,
    ) -> CallOutcome:
        """Call a tool. Cancelling this cancels the call in the server too.

        Args:
            tool: the name of the tool in that server.
            arguments: checked by the caller.
            progress: told what the server says about how far it is.
            timeout: seconds from when the server runs, instead of those of the upstream.
            check: asked right before the call is sent, when its list was told; what it raises is
                raised, and nothing is sent.

        Raises:
            UnavailableError: the server is not there; `details` has `reason` and `retry_after`.
            ToolFailedError: it refused the call, or answered what cannot be passed on.
            TooLargeError: its answer is larger than is taken.
            LimitError: too many calls wait already.
            RemitError: with the code `timeout`, it did not answer in time.
        """
        if self._inside >= self.upstream.concurrency + self._limits.waiting:
            raise self._crowded()
        self._inside += 1
        self._calls += 1
        try:
            await self._ready()
            asked = partial(self._ask, tool, arguments, progress, check)
            return await self._within(timeout or self.upstream.timeout, tool, asked)
        except UnavailableError as error:
            self._fail(str(error.details["reason"]))
            raise
        finally:
            self._inside -= 1

    async def refresh(self) -> Listing:
        """Ask for the list of tools anew, starting the server if need be; `on_listed` hears it too.

        A start that was put off is not: whoever asks may have repaired something.

        Raises:
            UnavailableError: the server is not there, or gave no list.
        """
        self._supervisor.hurry()
        await self._ready()
        try:
            with anyio.fail_after(self.upstream.start_timeout):
                return await self._supervisor.relisted()
        except ServerGoneError as error:
            raise self._unavailable(str(error)) from error
        except TimeoutError:
            raise self._unavailable("it gave no list of tools in time") from None

    async def _ready(self) -> None:
        self._supervisor.wanted.set()
        if self._monitor.state in ("idle", "starting"):
            with anyio.move_on_after(self.upstream.start_timeout):
                while self._monitor.state in ("idle", "starting"):
                    await self._monitor.next_change()
        if self._monitor.state != "ready":
            raise self._unavailable(self._monitor.reason or "it is still starting")

    async def _within(
        self, seconds: float, tool: str, ask: Callable[[], Awaitable[CallOutcome]]
    ) -> CallOutcome:
        with anyio.move_on_after(seconds):
            async with self._slots:
                await self._ready()  # it may have died while this waited for its turn
                return await ask()
        self._supervisor.doubt()
        message = f"{self.upstream.name} did not answer {tool} within {seconds:g} s"
        self._fail(message)
        raise with_code("timeout", message, "ask for less at once", {})

    async def _ask(
        self,
        tool: str,
        arguments: dict[str, Any],
        progress: Progress | None,
        check: Callable[[], None] | None,
    ) -> CallOutcome:
        begun = anyio.current_time()
        connection = self._supervisor.connection
        if connection is None:
            raise self._unavailable(self._monitor.reason or self._monitor.last_error)
        if check is not None:
            check()
        try:
            outcome = await connection.call(tool, arguments, progress)
        except ServerGoneError as error:
            raise await self._cut_off(connection, str(error)) from error
        seconds = anyio.current_time() - begun
        before = seconds if self._latency is None else self._latency
        self._latency = before + _WEIGHT * (seconds - before)
        return outcome

    async def _cut_off(self, connection: "ServerConnection", reason: str) -> UnavailableError:
        """The supervisor learns why a server is gone a moment after calls notice that it is."""
        with anyio.move_on_after(_GOODBYE_SECONDS):
            while connection.signals.ended and not self._supervisor.reason_of(connection):
                await self._monitor.next_change()
        return self._unavailable(self._supervisor.reason_of(connection) or reason)

    def _fail(self, reason: str) -> None:
        """A call got no answer."""
        self._failures += 1
        self._monitor.last_error = reason

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"the server {self.upstream.name} is not available: {reason}",
            hint=f"`remit upstream check {self.upstream.name}` says more",
            details={
                "upstream": self.upstream.name,
                "reason": reason,
                "retry_after": self._monitor.retry_after,
            },
        )

    def _crowded(self) -> RemitError:
        return LimitError(
            f"{self._inside} calls of {self.upstream.name} wait or run already",
            hint="ask again later, or raise its concurrency in upstreams.yaml",
            details={"limit": "concurrency", "retry_after": self._latency or 1.0},
        )
