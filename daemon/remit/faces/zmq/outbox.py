"""Sending, without ever waiting for a client.

What a client cannot take at once waits in its backlog, and goes out when libzmq says that the
client has read. A full backlog loses pushed events, counted and announced by a gap notice; a client
that does not even fetch its answers is cut off. Nobody else notices either.
"""

import errno
from collections.abc import Callable

import zmq

from remit.faces.zmq.frames import PushFrame
from remit.faces.zmq.limits import SocketLimits, SocketStats
from remit.faces.zmq.peers import Peer, Peers, cut, has_read_all
from remit_client.wire import ANSWER, GAP, PUSH, Gap

_MORE = int(zmq.SNDMORE)
_FIRST = int(zmq.SNDMORE | zmq.NOBLOCK)
_FIRST_SHARE = 4
"""So many times as much may wait where it is the first for its connection."""


class Outbox:
    """Everything that leaves the daemon's socket."""

    def __init__(
        self, socket: "zmq.Socket[bytes]", peers: Peers, *, limits: SocketLimits, stats: SocketStats
    ) -> None:
        # Past pyzmq's wrapper in Python, which every frame of every answer would pay for.
        self._send: Callable[..., object] = super(zmq.Socket, socket).send
        self._peers = peers
        self.limits = limits
        self.stats = stats
        self._waiting: set[Peer] = set()

    @property
    def waiting(self) -> bool:
        """Tell whether any client has a backlog."""
        return bool(self._waiting)

    def send(self, peer: Peer, version: bytes, kind: bytes, body: bytes) -> None:
        """Send an answer or a progress notice, now or when the client has read."""
        if peer.gone:
            return
        if not peer.backlog and self._transmit(peer, version, kind, body):
            return
        if self._has_room(peer, self.limits.backlog, len(body)):
            self._queue(peer, version, kind, body)
        elif kind == ANSWER:
            self._drop(peer)
            self.disconnect(peer)
        else:
            self._drop(peer)

    def push(self, peer: Peer, frame: PushFrame) -> bool:
        """Send a pushed event, now or when the client has read; False when it is missed."""
        if peer.gone:
            return False
        # Pushed events may fill only half, so that a talkative channel never costs the connection.
        room = self._has_room(peer, self.limits.backlog // 2, 0)
        if peer.missed and room:
            self._announce_gap(peer)
        peer.seq += 1
        if not room:
            peer.missed += 1
            self._drop(peer)
            return False
        body = frame.encode(peer.codec, peer.seq)
        if peer.backlog or not self._transmit(peer, peer.codec.version, PUSH, body):
            self._queue(peer, peer.codec.version, PUSH, body)
        return not peer.gone

    def _drop(self, peer: Peer) -> None:
        peer.dropped += 1
        self.stats.dropped += 1

    def flush(self) -> None:
        """Send what now fits of every backlog."""
        for peer in tuple(self._waiting):
            self._flush(peer)
            if not peer.backlog:
                self._waiting.discard(peer)
                if peer.missed and not peer.gone:
                    self._announce_gap(peer)

    def disconnect(self, peer: Peer) -> None:
        """Cut a client off, and forget what waited for it."""
        if cut(peer):
            self.stats.evicted += 1
        self._peers.forget(peer)
        self._waiting.discard(peer)

    def _flush(self, peer: Peer) -> None:
        while peer.backlog:
            version, kind, body = peer.backlog[0]
            if not self._transmit(peer, version, kind, body):
                return
            if peer.backlog:  # a vanished client's backlog is cleared while it is sent
                peer.backlog.popleft()
                peer.backlog_bytes -= len(body)

    def _announce_gap(self, peer: Peer) -> None:
        body = peer.codec.encode(Gap(peer.missed))
        peer.missed = 0
        if peer.backlog or not self._transmit(peer, peer.codec.version, GAP, body):
            self._queue(peer, peer.codec.version, GAP, body)

    def _has_room(self, peer: Peer, limit: int, size: int) -> bool:
        if len(peer.backlog) >= limit:
            return False
        if not self._waiting:
            return True
        # One that does not read must not silence others of its principal at once.
        most = self.limits.backlog_bytes * (1 if peer.backlog else _FIRST_SHARE)
        waiting = sum(one.backlog_bytes for one in self._peers.named(peer.name))
        return waiting + size <= most

    def _queue(self, peer: Peer, version: bytes, kind: bytes, body: bytes) -> None:
        if peer.gone:
            return
        peer.backlog.append((version, kind, body))
        peer.backlog_bytes += len(body)
        self._waiting.add(peer)

    def _may_hold(self, peer: Peer, size: int) -> bool:
        """Tell whether libzmq may be given a large message; it counts messages, and not bytes."""
        if peer.unread and has_read_all(peer):
            peer.unread = 0
        most = self.limits.unread_bytes * (1 if peer.unread else _FIRST_SHARE)
        peers = self._peers.named(peer.name)
        if sum(one.unread for one in peers) + size > most:
            for one in peers:
                if one.unread and has_read_all(one):
                    one.unread = 0
            unread = sum(one.unread for one in peers)
            if unread and unread + size > most:
                return False
        peer.unread += size
        return True

    def _transmit(self, peer: Peer, version: bytes, kind: bytes, body: bytes) -> bool:
        """Hand one message to libzmq; False when the client's queue is full."""
        send = self._send
        if len(body) > self.limits.large and not self._may_hold(peer, len(body)):
            return False
        try:
            send(peer.routing_id, _FIRST)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno != errno.EHOSTUNREACH:
                raise
            self._peers.forget(peer)
            return True
        # INVARIANT: nothing may fail between the first frame and the last, or the next message
        # would be appended to this one. The ROUTER decides at the first frame, these three follow.
        send(version, _MORE)
        send(kind, _MORE)
        send(body)
        return True
