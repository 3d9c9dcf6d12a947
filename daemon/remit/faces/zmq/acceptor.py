"""Accepting connections: one at a time, and only while there is room.

libzmq accepts whatever knocks, before anybody can ask who it is, and its ipc listener ends the
process when no descriptor is left. So the interest of its epoll in the listening socket is switched
off, and on for one connection (EPOLLONESHOT) when there is room. What libzmq has registered stands
in /proc/self/fdinfo; nothing of libzmq itself is touched. Elsewhere than on Linux there is no gate,
and connections are bounded only once they have spoken.

Accepting costs a descriptor before anybody is known. So only so many connections may be silent at
once, in the handshake or behind it; when others wait, the one that has been silent longest loses
its place. Descriptors for the daemon's own files stay free, whatever knocks.
"""

import ctypes
import fcntl
import os
import re
import select
import socket as sockets
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
import structlog

from remit.faces.zmq.limits import SocketLimits, SocketStats

log = structlog.get_logger()

_REGISTERED = re.compile(r"^tfd:\s*(\d+) events:\s*[0-9a-f]+ data:\s*([0-9a-f]+)", re.MULTILINE)
_MODIFY = 3
_HUNG_UP = select.POLLRDHUP if sys.platform == "linux" else 0
_FIND_SECONDS = 2.0
_PAUSE_SECONDS = 0.01
_LOOK_SECONDS = 0.1


class AcceptGate:
    """The registration of one listening socket in the epoll of libzmq."""

    def __init__(self, epoll: int, listening: int, data: int) -> None:
        self._epoll = epoll
        self._listening = listening
        self._data = data
        self._control = ctypes.CDLL(None, use_errno=True).epoll_ctl
        self.descriptor = os.dup(listening)
        """Readable while somebody knocks."""
        self._set(0)

    def let_one_in(self) -> None:
        """Let libzmq accept one connection, and nothing after it."""
        self._set(select.EPOLLIN)

    def close(self) -> None:
        """Stop watching."""
        os.close(self.descriptor)

    def _set(self, events: int) -> None:
        event = _Event(events | select.EPOLLONESHOT, self._data)
        if self._control(self._epoll, _MODIFY, self._listening, ctypes.byref(event)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


class _Silent(msgspec.Struct):
    """A connection that has not spoken; without an inode it is cut, and not closed yet."""

    inode: int
    since: float


class Acceptor:
    """Lets connections in, and remembers those that have not spoken yet."""

    def __init__(self, limits: SocketLimits, stats: SocketStats) -> None:
        self._spare = limits.spare_descriptors
        self._patience = limits.silent_seconds
        self._stats = stats
        self._silent: dict[AcceptGate, dict[int, _Silent]] = {}
        """By gate and descriptor, the oldest first."""
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


def find_gate(known: frozenset[int] = frozenset()) -> AcceptGate | None:
    """The gate of the socket that libzmq has just begun to listen on; it is closed.

    Args:
        known: listening sockets that were there before.
    """
    if sys.platform != "linux":
        return None
    deadline = time.monotonic() + _FIND_SECONDS
    while time.monotonic() < deadline:
        for epoll in _epolls():
            for listening, data in _registered(epoll):
                if listening not in known and _is_listening(listening):
                    return AcceptGate(epoll, listening, data)
        time.sleep(0.001)  # its own thread registers it, a moment after `bind`
    return None


def listening_sockets() -> frozenset[int]:
    """The descriptors that something in this process listens on."""
    if sys.platform != "linux":
        return frozenset()
    return frozenset(filter(_is_listening, _descriptors()))


def inode_of_descriptor(descriptor: int) -> int:
    """What tells two sockets apart that had the same descriptor one after the other; 0: none."""
    try:
        return os.fstat(descriptor).st_ino
    except OSError:
        return 0


def is_closed(descriptor: int, inode: int) -> bool:
    """Tell whether a connection is over, or closed by the other side, whoever has noticed."""
    if inode_of_descriptor(descriptor) != inode:
        return True
    poller = select.poll()
    poller.register(descriptor, _HUNG_UP)
    return bool(poller.poll(0))


def has_taken_all(descriptor: int, inode: int) -> bool:
    """Tell whether the system holds nothing any more that was sent on a connection.

    libzmq hands on what it has as soon as the system takes it, so then it holds nothing either.
    Where the system does not say, the number of messages is the only bound.
    """
    if inode == 0 or inode_of_descriptor(descriptor) != inode:
        return True  # somebody else's by now, or closed: nothing is kept for it
    try:
        waiting = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4)
    except OSError:
        return True
    return int.from_bytes(waiting, sys.byteorder) == 0


def cut_descriptor(descriptor: int, inode: int) -> bool:
    """Close a connection from this side, if its descriptor is still the one it had."""
    try:
        copy = os.dup(descriptor)
    except OSError:
        return False
    try:
        # The copy pins the socket: it cannot be swapped between comparing and closing.
        if inode == 0 or inode_of_descriptor(copy) != inode:
            return False
        with sockets.socket(fileno=os.dup(copy)) as connection:
            connection.shutdown(sockets.SHUT_RDWR)
    except OSError:
        return False
    finally:
        os.close(copy)
    return True


class _Event(ctypes.Structure):
    # As the kernel has it: without a gap on x86-64 only.
    _pack_ = 1 if os.uname().machine == "x86_64" else 0
    _fields_ = (("events", ctypes.c_uint32), ("data", ctypes.c_uint64))


def _descriptors() -> list[int]:
    return [int(one.name) for one in Path("/proc/self/fd").iterdir()]


def _epolls() -> list[int]:
    return [number for number in _descriptors() if "eventpoll" in _kind(number)]


def _registered(epoll: int) -> list[tuple[int, int]]:
    try:
        text = Path(f"/proc/self/fdinfo/{epoll}").read_text("ascii")
    except OSError:
        return []
    return [(int(number), int(data, 16)) for number, data in _REGISTERED.findall(text)]


def _is_listening(number: int) -> bool:
    if not _kind(number).startswith("socket:"):
        return False
    try:
        # Of a copy, so that nothing but the copy is closed.
        with sockets.socket(fileno=os.dup(number)) as found:
            return bool(found.getsockopt(sockets.SOL_SOCKET, sockets.SO_ACCEPTCONN))
    except OSError:
        return False


def _kind(number: int) -> str:
    try:
        return str(Path(f"/proc/self/fd/{number}").readlink())
    except OSError:
        return ""
