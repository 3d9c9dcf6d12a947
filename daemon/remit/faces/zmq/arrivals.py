"""Connections that have not spoken yet, and who is let in.

Accepting costs a descriptor before anybody is known. So only so many may be silent at once, in the
handshake or behind it; when others wait, the one that has been silent longest loses its place.
Descriptors for the daemon's own files stay free, whatever knocks.
"""

import os
import time
from collections.abc import Callable

import anyio
import anyio.lowlevel
import msgspec
import structlog

from remit.faces.zmq.accept import AcceptGate, cut_descriptor, inode_of_descriptor
from remit.faces.zmq.limits import Limits, Stats

log = structlog.get_logger()

_PAUSE_SECONDS = 0.01
_LOOK_SECONDS = 0.1


class _Silent(msgspec.Struct):
    """A connection that has not spoken; without an inode it is cut, and not closed yet."""

    inode: int
    since: float


class Arrivals:
    """The silent connections of each gate by descriptor, the oldest first."""

    def __init__(self, limits: Limits, stats: Stats) -> None:
        self._spare = limits.spare_descriptors
        self._patience = limits.silent_seconds
        self._stats = stats
        self._silent: dict[AcceptGate, dict[int, _Silent]] = {}
        self._armed: AcceptGate | None = None

    def accepted(self, descriptor: int) -> None:
        """Remember one that libzmq has taken in."""
        if self._armed is not None:
            one = _Silent(inode_of_descriptor(descriptor), time.monotonic())
            self._silent[self._armed][descriptor] = one
        self._armed = None

    def failed(self) -> None:
        """Take note that nobody was there any more."""
        self._armed = None

    def left(self, descriptor: int) -> None:
        """Forget one that has spoken, or is gone."""
        for silent in self._silent.values():
            silent.pop(descriptor, None)

    async def admit(self, gate: AcceptGate, most: int, look: Callable[[float], None]) -> None:
        """Let in who knocks while there is room, until cancelled.

        Args:
            gate: the way in.
            most: how many of those who came this way may be silent at once.
            look: reads the news of connections, and waits for some so many seconds.
        """
        silent = self._silent.setdefault(gate, {})
        while True:
            await anyio.wait_readable(gate.descriptor)
            look(0)
            if len(silent) < most and self._is_spare(gate):
                await anyio.sleep(self._let_in(gate, look))
            else:
                # A handshake takes about a millisecond: among many, each needs that much longer.
                await anyio.sleep(self._make_room(silent, self._patience + most / 1000))

    def _is_spare(self, gate: AcceptGate) -> bool:
        """Tell whether descriptors are free by taking them for a moment."""
        taken: list[int] = []
        try:
            taken.extend(os.dup(gate.descriptor) for _ in range(self._spare))
        except OSError:
            return False
        finally:
            for one in taken:
                os.close(one)
        return True

    def _let_in(self, gate: AcceptGate, look: Callable[[float], None]) -> float:
        """Let one in; answers how long to wait before the next.

        INVARIANT: nothing else of this loop takes a descriptor between the look and the accept.
        """
        self._armed = gate
        try:
            gate.let_one_in()
        except OSError as error:
            log.error("gate_stuck", problem=str(error))  # noqa: TRY400 - no traceback for a number
            self._armed = None
            return 1.0
        deadline = time.monotonic() + 1.0
        while self._armed is gate and time.monotonic() < deadline:
            look(_LOOK_SECONDS)
        if self._armed is gate:
            log.warning("accept_not_answered")
        return 0.0

    def _make_room(self, silent: dict[int, _Silent], patience: float) -> float:
        """Cut the one that has been silent longest; answers how long to wait before the next."""
        for descriptor, one in silent.items():
            if one.inode == 0:
                continue
            age = time.monotonic() - one.since
            if age < patience:
                return min(patience - age, _PAUSE_SECONDS)
            cut_descriptor(descriptor, one.inode)
            one.inode = 0
            self._stats.silenced += 1
            break
        return _PAUSE_SECONDS / 10
