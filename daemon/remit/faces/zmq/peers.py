"""The connections that have spoken, and the news of those that are gone.

A routing id is chosen by the client, so it names a connection only as long as that lives. The
socket monitor tells which descriptor closed. Its events are read before the sender of a new message
is entered, so a descriptor that is reused never removes its new owner.
"""

import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import TypeVar

import anyio
import zmq

from remit.faces.zmq.acceptor import (
    Acceptor,
    cut_descriptor,
    has_taken_all,
    inode_of_descriptor,
    is_closed,
)
from remit.faces.zmq.frames import MSGPACK, Codec
from remit.faces.zmq.limits import SocketLimits, SocketStats
from remit_client.wire import RequestId

_MONITOR_EVENT = struct.Struct("=hi")
_NOBLOCK = int(zmq.NOBLOCK)
_WATCHED = zmq.EVENT_DISCONNECTED | zmq.EVENT_ACCEPTED | zmq.EVENT_ACCEPT_FAILED
NO_DESCRIPTOR = -1
_SWEEP_AT = 64
_K = TypeVar("_K", str, int)


class Peer:
    """One connection: who is behind it, and what waits for it."""

    __slots__ = (
        "backlog", "backlog_bytes", "codec", "descriptor", "dropped", "gone", "inode", "jobs",
        "key", "missed", "name", "routing_id", "seq", "unread",
    )  # fmt: skip

    def __init__(self, routing_id: bytes, key: str, name: str) -> None:
        self.routing_id = routing_id
        self.key = key
        self.name = name
        self.codec: Codec = MSGPACK
        self.descriptor = NO_DESCRIPTOR
        self.inode = 0
        self.gone = False
        self.jobs: dict[RequestId, anyio.CancelScope] = {}
        self.backlog: deque[tuple[bytes, bytes, bytes]] = deque()
        self.backlog_bytes = 0
        self.unread = 0
        self.seq = 0
        self.missed = 0
        self.dropped = 0


class Peers:
    """Every connection that has sent a message, by routing id and by name."""

    def __init__(
        self, router: "zmq.Socket[bytes]", *, limits: SocketLimits, stats: SocketStats
    ) -> None:
        self.acceptor = Acceptor(limits, stats)
        self._limits = limits
        self._stats = stats
        self._by_id: dict[bytes, Peer] = {}
        self._by_name: dict[str, set[Peer]] = {}
        self._by_descriptor: dict[int, set[Peer]] = {}
        self._sweep_at = _SWEEP_AT
        self._router = router
        monitor = router.get_monitor_socket(_WATCHED)
        # A full monitor queue would stop libzmq's own thread.
        monitor.setsockopt(zmq.RCVHWM, 0)
        self._monitor = monitor
        self.find = self._by_id.get
        self.on_gone: Callable[[Peer], None] = lambda _peer: None
        self.on_arrival: Callable[[Peer], None] = lambda _peer: None

    def close(self) -> None:
        """Stop watching; nobody is connected any more."""
        self._router.disable_monitor()
        self._monitor.close(linger=0)
        for peer in list(self._by_id.values()):
            self.forget(peer)

    def named(self, name: str) -> tuple[Peer, ...]:
        """The connections of one principal."""
        return tuple(self._by_name.get(name, ()))

    def all(self) -> tuple[Peer, ...]:
        """Every connection."""
        return tuple(self._by_id.values())

    async def watch(self) -> None:
        """Forget connections as they close, until cancelled."""
        descriptor = self._monitor.fileno()
        while True:
            self.catch_up()
            await anyio.wait_readable(descriptor)

    def catch_up(self) -> None:
        """Forget every connection that has closed by now."""
        # Asking first: an empty receive raises, which costs twice as much.
        while int(self._monitor.get(zmq.EVENTS)) & zmq.POLLIN:
            event = self._monitor.recv(_NOBLOCK)
            self._monitor.recv(_NOBLOCK)
            kind, descriptor = _MONITOR_EVENT.unpack(event)
            if kind == zmq.EVENT_ACCEPTED:
                self.acceptor.accepted(descriptor)
            elif kind == zmq.EVENT_ACCEPT_FAILED:
                self.acceptor.failed()
            else:
                self.acceptor.left(descriptor)
                for peer in tuple(self._by_descriptor.get(descriptor, ())):
                    self.forget(peer)

    def look(self, seconds: float) -> None:
        """Read what is known of connections, after waiting for news no longer than that."""
        if seconds:
            self._monitor.poll(int(seconds * 1000))
        self.catch_up()

    def is_crowded(self, name: str, *, is_operator: bool, more: int = 1) -> bool:
        """Tell whether a principal may not have so many connections more.

        Operators have places of their own, so that the others never keep them out.
        """
        mine = self._by_name.get(name, ())
        own = len(mine)
        most, places = self._limits.connections_per_key, self._limits.connections
        if is_operator:
            most, places = max(most, self._limits.operators), sys.maxsize
        if own + more <= most and len(self._by_id) + more <= places:
            return False
        # libzmq may be behind: who closed a connection can open another at once.
        closed = sum(is_closed(peer.descriptor, peer.inode) for peer in mine)
        return own - closed + more > most or len(self._by_id) - closed + more > places

    def enter(self, routing_id: bytes, key: str, name: str, descriptor: int) -> Peer:
        """Remember the sender of a first message."""
        self.catch_up()
        old = self._by_id.get(routing_id)
        if old is not None:
            self.forget(old)
        if len(self._by_id) >= self._sweep_at:
            self._sweep()
        peer = Peer(routing_id, key, name)
        peer.descriptor = descriptor
        peer.inode = inode_of_descriptor(descriptor)
        self._by_id[routing_id] = peer
        self._by_name.setdefault(name, set()).add(peer)
        self._by_descriptor.setdefault(descriptor, set()).add(peer)
        self._stats.clients += 1
        self.acceptor.left(descriptor)
        # Did it close before its inode was read? Then the inode is another one's.
        self.catch_up()
        if peer.inode == 0:
            self.forget(peer)
        else:
            self.on_arrival(peer)
        return peer

    def _sweep(self) -> None:
        """Forget senders whose last message was read only after the news of their end."""
        for peer in self.all():
            if inode_of_descriptor(peer.descriptor) != peer.inode:
                self.forget(peer)
        self._sweep_at = max(_SWEEP_AT, 2 * len(self._by_id))

    def forget(self, peer: Peer) -> None:
        """Drop what is known of a connection, and end its jobs: nobody is left to hear of them."""
        if peer.gone:
            return
        peer.gone = True
        for scope in peer.jobs.values():
            scope.cancel()
        peer.backlog.clear()
        peer.backlog_bytes = 0
        peer.unread = 0
        self._stats.clients -= 1
        if self._by_id.get(peer.routing_id) is peer:
            del self._by_id[peer.routing_id]
        _discard(self._by_name, peer.name, peer)
        _discard(self._by_descriptor, peer.descriptor, peer)
        self.on_gone(peer)


def cut(peer: Peer) -> bool:
    """Close a connection from this side, if its descriptor is still the one it had."""
    return cut_descriptor(peer.descriptor, peer.inode)


def has_read_all(peer: Peer) -> bool:
    """Tell whether nothing waits any more of what was sent to a client."""
    return has_taken_all(peer.descriptor, peer.inode)


def _discard(index: dict[_K, set[Peer]], key: _K, peer: Peer) -> None:
    members = index.get(key)
    if members is not None:
        members.discard(peer)
        if not members:
            del index[key]
