"""The ZeroMQ face: agents and operators over one authenticated socket.

Order: messages of one connection are read in the order they were sent; inline answers keep it, jobs
answer when they are done. Back-pressure: a client that does not read loses pushed events first
(counted, announced), then its connection; it never delays another.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import structlog
import zmq
from anyio.abc import TaskGroup

from remit.faces.zmq.acceptor import AcceptGate
from remit.faces.zmq.frames import PushFrame
from remit.faces.zmq.jobs import Jobs
from remit.faces.zmq.limits import SocketLimits, SocketStats
from remit.faces.zmq.outbox import Outbox
from remit.faces.zmq.peers import Peer, Peers
from remit.faces.zmq.reader import Reader
from remit.faces.zmq.router import (
    Authenticator,
    Readiness,
    bind,
    inode_of,
    open_router,
    remove_file,
)
from remit.kernel.dispatch.call import Directory, Door
from remit.kernel.dispatch.counters import Load
from remit.model.event import Notice

log = structlog.get_logger()

# A full client may have read while another was being sent to; nobody signals that.
_RETRY_SECONDS = 0.05


class SocketFace:
    """The daemon's socket while it serves; `serve` makes one."""

    def __init__(
        self, context: "zmq.Context[zmq.Socket[bytes]]", door: Door, directory: Directory,
        *, server_key: str, limits: SocketLimits, tasks: TaskGroup,
    ) -> None:  # fmt: skip
        self.stats = stats = SocketStats()
        self.endpoint = ""
        self._files: dict[str, int | None] = {}
        self._limits = limits
        self._reading = True
        self._last: tuple[Notice, PushFrame] | None = None
        # Up before anything listens: see `Authenticator`.
        self._directory = directory
        self._authenticator = Authenticator(context, directory, stats, self._is_crowded)
        self._socket = open_router(context, secret_key=server_key.encode(), limits=limits)
        self._peers = Peers(self._socket, limits=limits, stats=stats)
        self._gates: list[AcceptGate] = []
        self._readiness = Readiness(self._socket.fileno())
        self._outbox = Outbox(self._socket, self._peers, limits=limits, stats=stats)
        self._jobs = Jobs(
            tasks, self._outbox, self._peers, self._readiness, limits=limits, stats=stats
        )
        self._reader = Reader(
            self._socket, door, directory, peers=self._peers, outbox=self._outbox, jobs=self._jobs
        )

    @property
    def on_gone(self) -> Callable[[Peer], None]:
        """Called with each connection that has closed."""
        return self._peers.on_gone

    @on_gone.setter
    def on_gone(self, callback: Callable[[Peer], None]) -> None:
        self._peers.on_gone = callback

    @property
    def on_arrival(self) -> Callable[[Peer], None]:
        """Called with each connection whose first message was read."""
        return self._peers.on_arrival

    @on_arrival.setter
    def on_arrival(self, callback: Callable[[Peer], None]) -> None:
        self._peers.on_arrival = callback

    def push(self, name: str, frame: PushFrame) -> int:
        """Send an event to every connection of a principal; tell how many got it.

        Each connection numbers what it is sent, so a client sees what it missed.
        """
        self._peers.catch_up()
        told = sum(self._outbox.push(peer, frame) for peer in self._peers.named(name))
        self._readiness.wake()
        return told

    def deliver(self, connection: Any, notice: Notice) -> bool:
        """Send a notice on one connection, now or when the client has read.

        False when nobody gets it: the connection is gone, or its client reads too slowly.
        """
        # The routing id may belong to somebody else by now: learn that before using it.
        self._peers.catch_up()
        taken = self._outbox.push(connection, self._frame(notice))
        self._readiness.wake()
        return taken

    def tell(self, name: str, notice: Notice) -> int:
        """Send a notice on every connection of a principal; tell how many got it."""
        return self.push(name, self._frame(notice))

    def _frame(self, notice: Notice) -> PushFrame:
        """Encoded once, however many connections the same notice goes to."""
        if self._last is None or self._last[0] is not notice:
            frame = PushFrame(notice.event, notice.data, origin=notice.origin, at=notice.at)
            self._last = (notice, frame)
        return self._last[1]

    def load(self, name: str) -> Load:
        """What waits for a principal, and what its open connections missed."""
        peers = self._peers.named(name)
        return Load(sum(len(one.backlog) for one in peers), sum(one.dropped for one in peers))

    def evict(self, name: str) -> int:
        """Cut the connections of a revoked principal, and end its jobs; tell how many were cut."""
        self._peers.catch_up()
        peers = self._peers.named(name)
        for peer in peers:
            self._jobs.cancel(peer)
            self._outbox.disconnect(peer)
        return len(peers)

    def start(self, tasks: TaskGroup, endpoint: str, door: str = "") -> None:
        """Listen and read; operators find a door of their own, where there is to be one."""
        tasks.start_soon(self._authenticator.run)
        tasks.start_soon(self._peers.watch)
        tasks.start_soon(self._read)
        limits = self._limits
        self.endpoint = self._listen(tasks, endpoint, limits.silent)
        if door:
            self._listen(tasks, door, limits.silent_operators)

    def _listen(self, tasks: TaskGroup, endpoint: str, silent: int) -> str:
        endpoint, gate = bind(self._socket, endpoint, self._limits.listen_backlog)
        self._files[endpoint] = inode_of(endpoint)
        if gate is None:
            log.warning("connections_not_bounded", endpoint=endpoint)
        else:
            self._gates.append(gate)
            tasks.start_soon(self._peers.acceptor.admit, gate, silent, self._peers.look)
        return endpoint

    def remove_files(self) -> None:
        """Remove what it listened on, where that is a file."""
        for endpoint, inode in self._files.items():
            remove_file(endpoint, inode)

    async def drain(self) -> None:
        """Take nothing new, let jobs end, and send what is still to be sent."""
        self._reading = False
        is_busy = self.stats.jobs > 0
        await self._jobs.finish(self._limits.drain_seconds)
        with anyio.move_on_after(1.0):
            while self._outbox.waiting:
                self._readiness.wake()
                await anyio.sleep(0.01)
        if is_busy:
            # The libzmq of a client drops an answer that its application has not fetched when the
            # connection ends: nobody can ask whether it was, so there is a moment for it.
            await anyio.sleep(self._limits.farewell_seconds)

    def close(self) -> None:
        """Close the sockets; what libzmq has taken is sent within the linger time."""
        self._readiness.close()
        for gate in self._gates:
            gate.close()
        self._peers.close()
        self._authenticator.close()
        self._socket.close()

    def _is_crowded(self, name: str) -> bool:
        """Tell whether a connection more of a principal would be too many."""
        principal = self._directory.principal(name)
        is_operator = principal is not None and principal.is_operator
        return self._peers.is_crowded(name, is_operator=is_operator)

    async def _read(self) -> None:
        while True:
            more = self._reading and self._reader.drain()
            if self._outbox.waiting:
                self._outbox.flush()
            # The sends above may have swallowed the signal of a new message. Asking also takes a
            # signal back that would wake us for nothing.
            more = self._has_news() or more
            if more and self._reading:
                await anyio.lowlevel.checkpoint()
            else:
                # A socket that is always ready would keep a cancellation out for ever.
                await anyio.lowlevel.checkpoint_if_cancelled()
                await self._readiness.wait(_RETRY_SECONDS if self._outbox.waiting else None)

    def _has_news(self) -> bool:
        return bool(int(self._socket.get(zmq.EVENTS)) & zmq.POLLIN)


@asynccontextmanager
async def serve(
    door: Door,
    directory: Directory,
    *,
    endpoint: str,
    server_key: str,
    door_of_operators: str = "",
    limits: SocketLimits | None = None,
) -> AsyncGenerator[SocketFace]:
    """Serve `door` at `endpoint` until the block ends; then drain.

    Args:
        door: decides and answers.
        directory: says who holds which key, at every message.
        endpoint: `ipc:///path` or `tcp://host:port`; `tcp://127.0.0.1:*` picks a port.
        server_key: the Z85 secret key of this daemon.
        door_of_operators: an ipc endpoint beside it, which others do not fill.
        limits: what one client may cost.

    Raises:
        SettingsError: the endpoint cannot be served.
    """
    # A context of its own: the authenticator's address is fixed within one.
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    face: SocketFace | None = None
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                face = SocketFace(
                    context, door, directory,
                    server_key=server_key, limits=limits or SocketLimits(), tasks=tasks,
                )  # fmt: skip
                face.start(tasks, endpoint, door_of_operators)
                yield face
            except Exception as error:  # carried out by hand: the task group would wrap it
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    if face is not None:
                        await face.drain()
            tasks.cancel_scope.cancel()
    finally:
        if face is not None:
            face.close()
        with anyio.CancelScope(shield=True):
            # Waits for the linger time, so not on the loop. It also closes what a face that
            # failed to start has left open.
            await anyio.to_thread.run_sync(context.destroy)
        if face is not None:
            face.remove_files()
    if failure is not None:
        raise failure
