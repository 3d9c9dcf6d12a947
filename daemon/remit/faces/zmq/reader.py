"""Reading: one task, many messages at each wake-up, and no message that can end it.

Frames are received one by one and `more` is looked at each time: whoever reads a fixed number
blindly takes the surplus frame of one client for the routing id of another.
"""

from collections import deque
from functools import partial

import structlog
import zmq

from remit.faces.zmq.frames import (
    CODECS,
    UNREADABLE,
    Codec,
    bad_frame,
    codec_for,
    encode_answer,
    failed,
    find_id,
)
from remit.faces.zmq.jobs import Jobs
from remit.faces.zmq.outbox import Outbox
from remit.faces.zmq.peers import Peer, Peers, cut
from remit.kernel.dispatch.call import Call, Directory, Door
from remit_client.wire import ANSWER, CANCEL, REQUEST, Answer, RequestId

_NOBLOCK = int(zmq.NOBLOCK)
_FRAMES_HINT = "send [version] [kind] [body], as in [b'R1'] [b'Q'] [a msgpack request]"
_BODY_HINT = "the body is one map in the format of its version: R1 is msgpack, J1 is JSON"

_EACH = 512
"""What a message costs in the inbox beside its bytes."""

InboxMessage = tuple[Peer, Codec, bytes, zmq.Frame]
"""Who sent it, in which version, of which kind, and the body."""

log = structlog.get_logger()


class Reader:
    """Takes messages off the socket and sees that each is answered."""

    def __init__(
        self,
        socket: "zmq.Socket[bytes]",
        door: Door,
        directory: Directory,
        *,
        peers: Peers,
        outbox: Outbox,
        jobs: Jobs,
    ) -> None:
        self._recv = socket.recv
        self._submit = door.submit
        self._directory = directory
        self._peers = peers
        self._outbox = outbox
        self._jobs = jobs
        self._limits = outbox.limits
        self._stats = outbox.stats
        self._answers: dict[Peer, list[tuple[bytes, bytes]]] = {}
        self._inbox = Inbox(outbox.limits.inbox_bytes)
        self._turns = self._room = 0

    def drain(self) -> bool:
        """Handle what has arrived, up to one batch; tell whether there may be more."""
        # A client that comes back under its old routing id must not be taken for its former self.
        self._peers.catch_up()
        more = self._receive()
        # Answers leave together, one client after the other: sent as they are made, each would
        # wake libzmq's thread and cost a system call there.
        answers, self._answers = self._answers, {}
        for peer, bodies in answers.items():
            for version, body in bodies:
                self._outbox.send(peer, version, ANSWER, body)
        return more

    def _receive(self) -> bool:
        """Take everything off the socket, and handle one batch of it."""
        inbox, limits = self._inbox, self._limits
        self._turns, self._room = limits.batch, limits.batch_bytes
        if inbox:
            self._turns = 0  # those who wait come first, and are chosen when all is there
        more = self._take_all()
        # In a flood the socket comes first: what libzmq holds, nobody counts.
        for _ in range(limits.batch // 16 if more else limits.batch):
            if not inbox:
                return more
            if self._room < 0:
                break
            try:
                self._handle(*inbox.next())
            except Exception:
                # Nothing a client sends may stop the daemon from reading the next message.
                log.exception("message_failed")
        return True

    def _take_all(self) -> bool:
        recv, take, stats = self._recv, self._take, self._stats
        for _ in range(self._limits.intake):
            try:
                routing_id = recv(_NOBLOCK)
            except zmq.Again:
                return False
            stats.messages += 1
            try:
                take(routing_id)
            except Exception:
                log.exception("message_failed")
        return True

    def _take(self, routing_id: bytes) -> None:
        recv = self._recv
        version = recv(0, copy=False)
        if not version.more:
            self._refuse_count(routing_id, version, version, count=1)
            return
        kind = recv(0, copy=False)
        if not kind.more:
            self._refuse_count(routing_id, version, kind, count=2)
            return
        body = recv(0, copy=False)
        if body.more:
            self._refuse_count(routing_id, version, body, count=3 + self._skip())
            return
        peer = self._peers.find(routing_id)
        if peer is None or peer.key != body.get("User-Id"):
            peer = self._sender(routing_id, body)
        if peer is not None:
            self._sort(peer, version, kind, body)

    def _sort(self, peer: Peer, version: zmq.Frame, kind: zmq.Frame, body: zmq.Frame) -> None:
        codec = CODECS.get(version.bytes)
        if codec is None:
            self._refuse_version(peer, version.bytes, body.bytes)
        elif self._turns > 0 and self._room >= 0:
            self._turns -= 1  # nobody waits: it need not wait either
            self._handle(peer, codec, kind.bytes, body)
        elif not self._inbox.add((peer, codec, kind.bytes, body)):
            self._refuse_surplus(peer, codec, body.bytes)

    def _handle(self, peer: Peer, codec: Codec, kind: bytes, body: zmq.Frame) -> None:
        if peer.gone:
            return
        peer.codec = codec
        if kind == REQUEST:
            self._request(peer, codec, body.bytes)
        elif kind == CANCEL:
            self._cancel(peer, codec, body.bytes)
        else:
            message = f"{kind[:16]!r} is not a kind that clients send"
            self._refuse(peer, codec, body.bytes, message, "send Q (request) or C (cancel)")

    def _request(self, peer: Peer, codec: Codec, body: bytes) -> None:
        """The hot path; what is not asked every time is in functions of its own."""
        size = len(body)
        self._room -= size
        try:
            request = codec.request(body)
        except UNREADABLE as error:
            self._refuse(peer, codec, body, f"unreadable request: {error}", _BODY_HINT)
            return
        # The key is asked for again at every message: this, and not the eviction, is what makes
        # a revocation final.
        name = peer.name
        known = self._directory.name_of_key(peer.key) == name
        principal = self._directory.principal(name) if known else None
        if principal is None:
            self._answer(peer, codec, _revoked(request.id))
            return
        if self._stats.jobs and (refusal := self._jobs.refuse(peer, request.id, size)) is not None:
            self._answer(peer, codec, refusal)
            return
        progress = partial(self._jobs.progress, peer, codec)
        try:
            outcome = self._submit(Call(principal, request, codec.format, progress, peer))
        except Exception:
            # A door never raises; if it does, its caller must not wait for ever.
            log.exception("door_failed", client=name, event_name=request.event)
            outcome = failed(request.id, "internal", "the daemon failed to answer")
        if isinstance(outcome, Answer):
            self._answer(peer, codec, outcome)
        else:
            self._jobs.start(peer, codec, request.id, outcome, size)

    def _cancel(self, peer: Peer, codec: Codec, body: bytes) -> None:
        try:
            request_id = codec.cancel(body).id
        except UNREADABLE as error:
            self._refuse(peer, codec, body, f"unreadable cancel: {error}", _BODY_HINT)
            return
        self._jobs.cancel(peer, request_id)

    def _sender(self, routing_id: bytes, frame: zmq.Frame) -> Peer | None:
        """Whose message this is: libzmq's word on the frame itself, never the routing id's.

        None when it is one connection too many: several can pass the handshake side by side.
        """
        key = frame.get("User-Id")
        peer = self._peers.find(routing_id)
        if peer is None or peer.key != key:
            name = self._directory.name_of_key(str(key)) or ""
            peer = self._peers.enter(routing_id, str(key), name, int(frame.get(zmq.SRCFD)))
            principal = self._directory.principal(name)
            is_operator = principal is not None and principal.is_operator
            if self._peers.is_crowded(name, is_operator=is_operator, more=0):
                self._stats.crowded += 1
                cut(peer)
                self._peers.forget(peer)
                return None
        return peer

    def _answer(self, peer: Peer, codec: Codec, answer: Answer) -> None:
        body = encode_answer(codec, answer, limit=self._limits.max_message)
        self._room -= len(body)
        bodies = self._answers.get(peer)
        if bodies is None:
            bodies = self._answers[peer] = []
        bodies.append((codec.version, body))

    def _skip(self) -> int:
        """Read the surplus frames of a message, and count them."""
        count = 1
        while self._recv(0, copy=False).more:
            count += 1
        return count

    def _refuse_count(
        self, routing_id: bytes, version: zmq.Frame, last: zmq.Frame, *, count: int
    ) -> None:
        peer = self._sender(routing_id, last)
        if peer is None:
            return
        message = f"a message has three frames, this one has {count}"
        self._refuse(peer, codec_for(version.bytes), b"", message, _FRAMES_HINT)

    def _refuse_version(self, peer: Peer, version: bytes, body: bytes) -> None:
        self._stats.bad_frames += 1
        codec = codec_for(version)
        message = f"{version[:16]!r} is not a version this daemon speaks"
        hint = "send R1 (msgpack) or J1 (JSON)"
        request_id = find_id(codec, body)
        self._answer(peer, codec, failed(request_id, "unsupported_version", message, hint=hint))

    def _refuse_surplus(self, peer: Peer, codec: Codec, body: bytes) -> None:
        if self._inbox.is_flooded(peer):
            if not peer.gone:
                log.warning("flood_cut", client=peer.name)
                self._outbox.disconnect(peer)
            return
        message = f"requests of this client wait with {self._inbox.limit:,} bytes already"
        request_id, hint = find_id(codec, body), "wait for some answers first"
        refusal = failed(request_id, "limit_exceeded", message, hint=hint, retry_after=1.0)
        self._answer(peer, codec, refusal)

    def _refuse(self, peer: Peer, codec: Codec, body: bytes, message: str, hint: str) -> None:
        self._stats.bad_frames += 1
        self._answer(peer, codec, bad_frame(find_id(codec, body), message, hint=hint))


class Inbox:
    """Messages that were taken off the socket and wait; clients take turns.

    libzmq itself could hold a client back only by not reading on, and that is not safe. So all is
    taken from it at once. A client that has sent too much is told so, and cut off if it goes on.
    """

    def __init__(self, limit: int) -> None:
        """Begin empty; of one client so many bytes are kept, and as many refused one by one."""
        self.limit = limit
        self._queues: dict[str, _ClientQueue] = {}
        self._turns: deque[str] = deque()
        """Whose turn it is; everybody who has something here stands in it once."""

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, message: InboxMessage) -> bool:
        """Keep a message for later; False when its sender has too much here already."""
        key, size = message[0].key, len(message[3]) + _EACH
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _ClientQueue()
            self._turns.append(key)
        elif queue.bytes + size > self.limit:
            queue.surplus += size
            return False
        queue.bytes += size
        queue.messages.append(message)
        return True

    def is_flooded(self, peer: Peer) -> bool:
        """Tell whether a client goes on although it was told that it sends too much."""
        queue = self._queues.get(peer.key)
        return queue is not None and queue.surplus > self.limit

    def next(self) -> InboxMessage:
        """Take out the oldest message of the client whose turn it is."""
        key = self._turns.popleft()
        queue = self._queues[key]
        message = queue.messages.popleft()
        if queue.messages:
            queue.bytes -= len(message[3]) + _EACH
            self._turns.append(key)
        else:
            del self._queues[key]
        return message


class _ClientQueue:
    """The messages of one client, in the order in which they came."""

    __slots__ = ("bytes", "messages", "surplus")

    def __init__(self) -> None:
        self.messages: deque[InboxMessage] = deque()
        self.bytes = 0
        self.surplus = 0


def _revoked(request_id: RequestId) -> Answer:
    message = "the key of this connection was revoked"
    hint = "ask the operator for a new key"
    return failed(request_id, "denied", message, hint=hint, reason="revoked")
