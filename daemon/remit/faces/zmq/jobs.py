"""Requests that wait: each runs in a task of its own, and only its sender can cancel it."""

from functools import partial

import anyio
import structlog
from anyio.abc import TaskGroup

from remit.faces.zmq.frames import Codec, encode_answer, failed
from remit.faces.zmq.limits import SocketLimits, SocketStats
from remit.faces.zmq.outbox import Outbox
from remit.faces.zmq.peers import Peer, Peers
from remit.faces.zmq.router import Readiness
from remit.kernel.dispatch.call import Job
from remit_client.wire import ANSWER, PROGRESS, Answer, Progress, RequestId

log = structlog.get_logger()


class Jobs:
    """The jobs in flight.

    They are registered with their connection, so a request id means nothing to anybody else. They
    are counted by key, so that reconnecting does not buy a client more of them.
    """

    def __init__(
        self, tasks: TaskGroup, outbox: Outbox, peers: Peers, readiness: Readiness,
        *, limits: SocketLimits, stats: SocketStats,
    ) -> None:  # fmt: skip
        self._tasks = tasks
        self._outbox = outbox
        self._peers = peers
        self._readiness = readiness
        self._limits = limits
        self._stats = stats
        self._load: dict[str, int] = {}
        self._held: dict[str, int] = {}
        self._scopes: set[anyio.CancelScope] = set()
        self._idle = anyio.Event()

    def refuse(self, peer: Peer, request_id: RequestId, size: int) -> Answer | None:
        """Why this request of `size` bytes may not start now, if it may not."""
        if request_id in peer.jobs:
            hint = "give every request an id of its own"
            return failed(request_id, "conflict", "a request with this id is in flight", hint=hint)
        if self._load.get(peer.key, 0) >= self._limits.in_flight:
            message = f"{self._limits.in_flight} requests of this client are in flight"
            hint = "wait for some answers first"
            return failed(request_id, "limit_exceeded", message, hint=hint, retry_after=1.0)
        held, most = self._held.get(peer.key, 0), self._limits.in_flight_bytes
        if held and held + size > most:
            message = f"requests of this client in flight have {held:,} bytes, {most:,} may be"
            hint = "wait for some answers first"
            return failed(request_id, "limit_exceeded", message, hint=hint, retry_after=1.0)
        return None

    def start(self, peer: Peer, codec: Codec, request_id: RequestId, job: Job, size: int) -> None:
        """Run the job of a request of `size` bytes; its answer goes to `peer`."""
        scope = anyio.CancelScope()
        peer.jobs[request_id] = scope
        self._scopes.add(scope)
        self._load[peer.key] = self._load.get(peer.key, 0) + 1
        self._held[peer.key] = self._held.get(peer.key, 0) + size
        self._stats.jobs += 1
        self._tasks.start_soon(partial(self._run, peer, codec, request_id, job, scope, size))

    def progress(self, peer: Peer, codec: Codec, progress: Progress) -> None:
        """Tell a client how far its job is."""
        try:
            body = codec.encode(progress)
        except Exception:
            # A handler's odd notice must not end its job.
            log.exception("progress_not_sent", client=peer.name)
            return
        if len(body) <= self._limits.max_message:
            self._send(peer, codec.version, PROGRESS, body)

    def cancel(self, peer: Peer, request_id: RequestId | None = None) -> None:
        """Cancel one job of a connection, or all of them."""
        scopes = list(peer.jobs.values()) if request_id is None else [peer.jobs.get(request_id)]
        for scope in scopes:
            if scope is not None:
                scope.cancel()

    async def finish(self, seconds: float) -> None:
        """Give the jobs this long, then cancel what is left."""
        for patience in (seconds, 1.0):
            with anyio.move_on_after(patience):
                while self._scopes:
                    self._idle = anyio.Event()
                    await self._idle.wait()
            for scope in self._scopes:
                scope.cancel()

    async def _run(
        self, peer: Peer, codec: Codec, request_id: RequestId, job: Job,
        scope: anyio.CancelScope, size: int,
    ) -> None:  # fmt: skip
        answer = failed(request_id, "cancelled", "the request was cancelled")
        try:
            with scope:
                answer = await job.run()
        except Exception:
            log.exception("job_failed", client=peer.name)
            answer = failed(request_id, "internal", "the daemon failed to answer")
        finally:
            # Whatever ended the job, its place is free again.
            self._release(peer, request_id, scope, size)
        self._send(
            peer, codec.version, ANSWER,
            encode_answer(codec, answer, limit=self._limits.max_message),
        )  # fmt: skip

    def _release(
        self, peer: Peer, request_id: RequestId, scope: anyio.CancelScope, size: int
    ) -> None:
        del peer.jobs[request_id]
        self._scopes.discard(scope)
        self._stats.jobs -= 1
        self._load[peer.key] -= 1
        self._held[peer.key] -= size
        if not self._load[peer.key]:
            del self._load[peer.key], self._held[peer.key]
        if not self._scopes:
            self._idle.set()

    def _send(self, peer: Peer, version: bytes, kind: bytes, body: bytes) -> None:
        # The routing id may belong to somebody else by now: learn that before using it.
        self._peers.catch_up()
        self._outbox.send(peer, version, kind, body)
        self._readiness.wake()
