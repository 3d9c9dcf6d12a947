"""The supervisor of one upstream server: starts it, follows its list, restarts it when it fails.

Everything happens in the task of `run`: the protocol library wants a connection to be closed by the
task that opened it. `Backoff` says how long to wait before the next start. A list of tools is asked
for again at once when a person asks, and after a while when the server says that it has changed.
"""

import math
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import structlog

from remit.features.upstreams.client.state import (
    ClientLimits,
    Environment,
    HandshakeError,
    Health,
    Listing,
    ListRequest,
    ServerGoneError,
    ServerOutput,
    StartParameters,
    State,
    environment_of,
)
from remit.model.upstream import Upstream

if TYPE_CHECKING:
    from remit.features.upstreams.client.connection import ServerConnection

_GATHER_SECONDS = 0.03
"""A server that changes ten tools says so ten times."""
_SHORTEST_GAP = 0.1
_LONGEST_GAP = 60.0
_QUIET_SECONDS = 10.0
"""Whoever was quiet for so long is believed at once again."""
log = structlog.get_logger()


class HandshakeMode:
    """The greeting of one server."""

    def __init__(self, *, is_process: bool) -> None:
        self._open = is_process
        self._turned = False
        self.mode = "auto"

    def settle(self) -> None:
        """It answered: so it is greeted from now on."""
        self._open = False

    def failed(self, *, during: bool) -> bool:
        """It did not answer; tells whether to try the other greeting at once.

        Args:
            during: whether it ended while it was greeted.
        """
        if not self._open:
            return False
        first, self._turned = not self._turned, True
        self.mode = "legacy" if self.mode == "auto" else "auto"
        return first and during


class RelistSchedule:
    """The delay before the list is read again after the server says that it changed."""

    def __init__(self, limits: ClientLimits) -> None:
        self._usual = limits.relist_seconds
        self._gap = _SHORTEST_GAP
        self._last = -math.inf

    def due(self, changed_at: float | None) -> float:
        """When to ask for the list; never, when nothing changed."""
        if changed_at is None:
            return math.inf
        if changed_at - self._last > _QUIET_SECONDS:
            self._gap = _SHORTEST_GAP
        return max(changed_at + _GATHER_SECONDS, self._last + self._gap)

    def asked(self) -> None:
        """The list is asked for now."""
        self._last = anyio.current_time()

    def found(self, *, changed: bool) -> None:
        """It was right, or cried wolf: then it is believed less and less quickly."""
        self._gap = min(self._gap * 2, self._usual if changed else _LONGEST_GAP)


class HealthMonitor:
    """The health of a server; each change of state wakes those who wait for one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed = anyio.Event()
        self._since = clock()
        self._retry_at: float | None = None
        self.state: State = "idle"
        self.reason = ""
        self.restarts = 0
        self.last_error = ""
        self.protocol = ""
        self.server_info = ""

    def turn(self, state: State, reason: str = "", *, retry_after: float | None = None) -> None:
        """Come into a state."""
        self.state, self.reason, self._since = state, reason, self._clock()
        self._retry_at = None if retry_after is None else anyio.current_time() + retry_after
        self._changed.set()
        self._changed = anyio.Event()

    async def next_change(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    @property
    def retry_after(self) -> float | None:
        """Seconds until the next start, if one is planned."""
        if self._retry_at is None:
            return None
        return round(max(0.0, self._retry_at - anyio.current_time()), 3)

    def health(self) -> Health:
        """How it is now, but for what is counted of calls."""
        return Health(
            state=self.state,
            reason=self.reason,
            since=self._since,
            restarts=self.restarts,
            last_error=self.last_error,
            protocol=self.protocol,
            server_info=self.server_info,
            retry_after=self.retry_after if self._retry_at is not None else None,
        )


class Backoff:
    """Pauses that double while a server keeps failing, a little apart from each other's.

    One that had worked is started again at once, so that the next call finds it.
    """

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._failures = 0

    def next(self, *, ran: float | None) -> float:
        """Seconds until the next start.

        Args:
            ran: seconds that it worked before it failed; None: it never started.
        """
        if ran is not None and ran >= self._limits.well_after:
            self._failures = 0
        free = ran is not None and self._failures == 0
        self._failures += 1
        if free:
            return 0.0
        doubled = self._limits.first_pause * 2.0 ** min(self._failures - 1, 30)
        # Many servers that failed together should not start together.
        return min(doubled, self._limits.longest_pause) * random.uniform(0.5, 1.0)  # noqa: S311


class Supervisor:
    """Keeps one server running."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        secret: Callable[[str], str | None],
        on_listed: Callable[[Listing], Awaitable[None]],
        guard: Sequence[str],
        limits: ClientLimits,
        monitor: HealthMonitor,
    ) -> None:
        self._upstream = upstream
        self._secret = secret
        self._on_listed = on_listed
        self._guard = guard
        self._limits = limits
        self._monitor = monitor
        self._log = log.bind(upstream=upstream.name)
        self._hurry = anyio.Event()
        self._backoff = Backoff(limits)
        self._handshake = HandshakeMode(is_process=not upstream.url)
        self._list_request: ListRequest | None = None
        self._listing: Listing | None = None
        self._has_failed = False
        self._ended: tuple[ServerConnection | None, str] = (None, "")
        self.wanted = anyio.Event()
        """Set when somebody needs it: a lazy one starts."""
        self.connection: ServerConnection | None = None

    def hurry(self) -> None:
        """Somebody has repaired something: do not put off the next start."""
        if self._monitor.state == "failing":
            self._monitor.turn("starting")
            self._hurry.set()

    async def relisted(self) -> Listing:
        """A list that is asked for from now on.

        Raises:
            ServerGoneError: there is none.
        """
        if self._list_request is None:
            self._list_request = ListRequest()
            if self.connection is not None:
                self.connection.signals.wake.set()
        return await self._list_request.wait()

    def doubt(self) -> None:
        """A call was not answered in time: see whether the server answers anything."""
        if self.connection is not None:
            self.connection.signals.change()

    def reason_of(self, connection: "ServerConnection") -> str:
        """Why a connection ended; empty while that is not known."""
        ended, reason = self._ended
        return reason if ended is connection else ""

    async def run(self) -> None:
        """Keep it until cancelled."""
        try:
            if self._upstream.start == "lazy":
                await self.wanted.wait()
            self._monitor.turn("starting")
            # 0.8 s that the loop must not stand still for
            open_connection = await anyio.to_thread.run_sync(_load)
            while True:
                await self._once(open_connection)
                with anyio.move_on_after(self._monitor.retry_after or 0):
                    await self._hurry.wait()
                self._monitor.restarts += 1
                self._monitor.turn("starting")
        finally:
            self._close("stopped", "it is not kept any more")

    async def _once(self, open_connection: Any) -> None:
        """One life."""
        self._has_failed = False
        self._hurry = anyio.Event()
        errors: ServerOutput | None = None
        limit = self._upstream.start_timeout
        starting = anyio.CancelScope(deadline=anyio.current_time() + limit)
        try:
            with starting:
                environment = environment_of(self._upstream, self._secret)
                errors = ServerOutput(self._log, environment.masks, stream="stderr")
                async with open_connection(self._start(environment, errors)) as connection:
                    listing = await connection.tools()
                    starting.deadline = math.inf
                    await self._live(connection, listing)
        except Exception as error:  # the library raises whatever its parts raise, in groups
            self._start_failed(_first(error))
        if starting.cancelled_caught:
            said = f": {errors.last}" if errors is not None and errors.last else ""
            self._start_failed(TimeoutError(f"it did not start within {limit:g} s{said}"))

    def _start(self, environment: Environment, errors: ServerOutput) -> StartParameters:
        return StartParameters(
            upstream=self._upstream,
            environment=environment,
            guard=self._guard,
            limits=self._limits,
            errors=errors,
            noise=ServerOutput(self._log, environment.masks, stream="stdout"),
            mode=self._handshake.mode,
        )

    def _start_failed(self, error: BaseException) -> None:
        if self._has_failed:  # what else went wrong when a dead one was put away
            self._log.debug("upstream_ended_badly", error=type(error).__name__)
            return
        at_once = self._handshake.failed(during=isinstance(error, HandshakeError))
        self._record_failure(str(error) or type(error).__name__, ran=None, at_once=at_once)

    async def _live(self, connection: "ServerConnection", listing: Listing) -> None:
        """From its first list until it ends."""
        self._handshake.settle()
        self._monitor.protocol = connection.protocol
        self._monitor.server_info = f"{connection.server_name} {connection.server_version}".strip()
        begun = anyio.current_time()
        # Before any call: the list may show that a tool is not the one that was trusted.
        await self._told(listing)
        self.connection = connection
        self._monitor.turn("ready")
        try:
            async with anyio.create_task_group() as listening:
                listening.start_soon(connection.listen)
                await self._follow(connection)
                listening.cancel_scope.cancel()
            reason = await connection.end_reason()
            self._ended = (connection, reason)
            self._record_failure(reason, ran=anyio.current_time() - begun)
        finally:
            self.connection = None

    async def _follow(self, connection: "ServerConnection") -> None:
        """Ask for its list whenever that may have changed, until it ends."""
        signals, schedule = connection.signals, RelistSchedule(self._limits)
        while not signals.ended:
            due = schedule.due(signals.changed_at) if self._list_request is None else -math.inf
            with anyio.CancelScope(deadline=due):
                await signals.wake.wait()
                signals.wake = anyio.Event()
            if anyio.current_time() < due:
                continue
            request, self._list_request = self._list_request, None
            if request is not None:
                await self._relist(connection, request)
            else:
                schedule.asked()
                schedule.found(changed=await self._relist(connection, None))

    async def _relist(self, connection: "ServerConnection", request: ListRequest | None) -> bool:
        """Ask for the list; tells whether it is another one."""
        connection.signals.changed_at = None
        reason, changed = "", False
        try:
            with anyio.fail_after(self._upstream.start_timeout):
                listing = await connection.tools()
        except ServerGoneError as error:
            reason = str(error)
        except TimeoutError:
            reason = "it does not answer any more"
            connection.signals.end(reason)
        else:
            changed = not listing.is_same(self._listing)
            if changed or request is not None:
                await self._told(listing)
            if request is not None:
                request.give(listing)
            return changed
        self._log.warning("upstream_not_listed", reason=reason)
        if request is not None:
            request.refuse(reason)
        return False

    async def _told(self, listing: Listing) -> None:
        self._listing = listing
        try:
            await self._on_listed(listing)
        except Exception:
            self._log.exception("upstream_list_not_taken")

    def _record_failure(self, reason: str, *, ran: float | None, at_once: bool = False) -> None:
        """It has failed: say so, and when it is started again."""
        self._has_failed = True
        pause = 0.0 if at_once else self._backoff.next(ran=ran)
        self._log.warning("upstream_failed", reason=reason, retry_after=round(pause, 3))
        self._monitor.last_error = reason
        if pause:
            self._close("failing", reason, pause)
        else:
            self._monitor.turn("starting")

    def _close(self, state: State, reason: str, pause: float | None = None) -> None:
        self._monitor.turn(state, reason, retry_after=pause)
        request, self._list_request = self._list_request, None
        if request is not None:
            request.refuse(reason)


def _load() -> Any:
    from remit.features.upstreams.client.connection import open_connection  # noqa: PLC0415 - 0.8 s, only with a server

    return open_connection


def _first(error: BaseException) -> BaseException:
    """The first of possibly many failures."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
