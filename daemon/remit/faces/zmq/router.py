"""The ROUTER socket of the daemon: its options, its place in the file system, who may connect."""

import asyncio  # noqa: TID251  a lasting add_reader; see `Readiness`
import errno
import os
import socket as sockets
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import structlog
import zmq
from zmq.utils import z85

from remit.errors import SettingsError
from remit.faces.zmq.acceptor import AcceptGate, find_gate, listening_sockets
from remit.faces.zmq.limits import SocketLimits, SocketStats
from remit.kernel.dispatch.call import Directory

log = structlog.get_logger()

_ZAP_DOMAIN = b"remit"
_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_ZAP_VERSION = b"1.0"
_CURVE_FRAMES = 7
_CROWDED = b"500"
"""Not 300: libzmq would neither answer the client nor let it go."""
_OWNER_ONLY = 0o177

_HINTS = {
    errno.ENAMETOOLONG: "a socket path has at most 107 bytes: choose a shorter state directory",
    errno.EADDRINUSE: "something else serves there: stop it, or choose another endpoint",
    errno.EACCES: "choose a directory that this user may write",
    errno.ENOENT: "create the directory first",
}


def open_router(
    context: "zmq.Context[zmq.Socket[bytes]]", *, secret_key: bytes, limits: SocketLimits
) -> "zmq.Socket[bytes]":
    """Make the ROUTER; it listens nowhere yet."""
    socket = context.socket(zmq.ROUTER)
    socket.curve_server = 1
    socket.curve_secretkey = secret_key
    # Without both of these a dead authenticator lets everybody in.
    socket.setsockopt(zmq.ZAP_DOMAIN, _ZAP_DOMAIN)
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
    # With hand-over a client could take another one's connection by choosing its routing id.
    socket.setsockopt(zmq.ROUTER_HANDOVER, 0)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.setsockopt(zmq.MAXMSGSIZE, limits.max_message)
    socket.setsockopt(zmq.SNDHWM, limits.high_water)
    # INVARIANT: libzmq is never made to stop reading a connection: when that closes meanwhile, a
    # heartbeat of either side ends the process (`!_io_error`). What arrives is bounded by `Inbox`.
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.BACKLOG, limits.listen_backlog)
    socket.setsockopt(zmq.HANDSHAKE_IVL, limits.handshake_ms)
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, limits.keepalive_seconds)
    socket.setsockopt(zmq.LINGER, limits.linger_ms)
    return socket


def bind(socket: "zmq.Socket[bytes]", endpoint: str, backlog: int) -> tuple[str, AcceptGate | None]:
    """Listen at `endpoint`; tell where that really is, and how to let somebody in.

    Nobody is let in before that is asked for; without a gate everybody is.

    Raises:
        SettingsError: the endpoint cannot be served.
    """
    known = listening_sockets()
    before = os.umask(_OWNER_ONLY)
    draft: Path | None = None
    try:
        path = _path_of(endpoint)
        if path is not None and sys.platform == "linux":
            draft = _listen_beside(socket, path, backlog)
        socket.bind(endpoint)
        socket.setsockopt(zmq.USE_FD, -1)
        gate = find_gate(known)
        if draft is not None and path is not None:
            draft.replace(path)  # from here on somebody can knock
            return endpoint, gate
    except (OSError, zmq.ZMQError) as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        hint = _HINTS.get(
            error.errno or 0, "write it as ipc:///path/to/remit.sock or tcp://127.0.0.1:7700"
        )
        raise SettingsError(f"cannot serve {endpoint}: {error.strerror}", hint=hint) from error
    finally:
        os.umask(before)
    return socket.getsockopt_string(zmq.LAST_ENDPOINT), gate


def inode_of(endpoint: str) -> int | None:
    """The file behind an ipc endpoint, so that only our own is removed in the end."""
    path = _path_of(endpoint)
    try:
        return path.stat().st_ino if path else None
    except OSError:
        return None


def remove_file(endpoint: str, inode: int | None) -> None:
    """Remove the ipc file, unless another daemon has put its own there."""
    path = _path_of(endpoint)
    if path and inode is not None and inode_of(endpoint) == inode:
        path.unlink(missing_ok=True)


class Readiness:
    """Tells when the socket is worth looking at.

    libzmq's descriptor is edge-triggered: any send may swallow the signal of a message that has
    just arrived. So whoever sends outside the reader calls `wake`, and the reader looks again.

    The descriptor stays registered for the life of the socket: `anyio.wait_readable` registers and
    removes it at each wake-up, two system calls that a busy reader need not pay.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._event = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self.wake)

    def wake(self) -> None:
        """Make the reader look at the socket."""
        self._event.set()

    async def wait(self, patience: float | None) -> None:
        """Return when there may be news, or after `patience` seconds."""
        if patience is None:
            await self._event.wait()
        else:
            with anyio.move_on_after(patience):
                await self._event.wait()
        self._event = anyio.Event()

    def close(self) -> None:
        """Stop listening to the descriptor."""
        self._loop.remove_reader(self._descriptor)


class Authenticator:
    """Admits the holders of living keys to finish a handshake: the ZAP side of CURVE.

    libzmq asks this handler about every connection. It is ours, and not `zmq.auth`'s, because that
    one brings `zmq.asyncio` along (14 MB) and answers from copies of the keys, not the live
    directory. The User-Id of a connection is its public key.

    Not the holder's name: a name that was revoked and given a new key must not revive a
    connection that was made with the old one.
    """

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        directory: Directory,
        stats: SocketStats,
        is_crowded: Callable[[str], bool],
    ) -> None:
        self._directory = directory
        self._is_crowded = is_crowded
        self._stats = stats
        self._socket = context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind(_ZAP_ENDPOINT)

    async def run(self) -> None:
        """Answer libzmq until cancelled."""
        descriptor = self._socket.fileno()
        while True:
            self._drain()
            await anyio.wait_readable(descriptor)

    def close(self) -> None:
        """Stop answering; from here on libzmq admits nobody, as the domain is enforced."""
        self._socket.close()

    def _drain(self) -> None:
        # The descriptor is edge-triggered: leave nothing behind.
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._socket.send_multipart(self._reply(frames))

    def _reply(self, frames: list[bytes]) -> list[bytes]:
        request_id = frames[1] if len(frames) > 1 else b""
        try:
            user = self._admit(frames)
        except Exception:
            # A directory that fails must refuse, not stop the authenticator.
            log.exception("authentication_failed")
            user = None
        if user is None:
            self._stats.refused += 1
            return [_ZAP_VERSION, request_id, b"400", b"unknown key", b"", b""]
        if user == _CROWDED:
            self._stats.crowded += 1
            return [_ZAP_VERSION, request_id, _CROWDED, b"too many connections", b"", b""]
        self._stats.admitted += 1
        return [_ZAP_VERSION, request_id, b"200", b"OK", user, b""]

    def _admit(self, frames: list[bytes]) -> bytes | None:
        """The key of a connection, a status when there are too many, None when nobody holds it."""
        if len(frames) != _CURVE_FRAMES or frames[0] != _ZAP_VERSION:
            return None
        _, _, domain, address, _, mechanism, credentials = frames
        if domain != _ZAP_DOMAIN or mechanism != b"CURVE":
            return None
        key = z85.encode(credentials)
        name = self._directory.name_of_key(key.decode())
        if name is None:
            log.warning("key_refused", public_key=key.decode(), address=address.decode("latin-1"))
            return None
        return _CROWDED if self._is_crowded(name) else key


def _listen_beside(socket: "zmq.Socket[bytes]", path: Path, backlog: int) -> Path:
    """Have libzmq listen on a socket that nobody knows of yet; answers where it is."""
    draft = path.with_name(f".{os.urandom(3).hex()}")
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as listening:
        try:
            listening.bind(str(draft))
        except OSError as error:
            # Python has no number for a path that is too long.
            number = error.errno or errno.ENAMETOOLONG
            raise OSError(number, os.strerror(number)) from error
        listening.listen(backlog)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's own
        socket.setsockopt(zmq.USE_FD, listening.detach())  # libzmq closes it
    return draft


def _path_of(endpoint: str) -> Path | None:
    name = endpoint.removeprefix("ipc://")
    return Path(name) if name != endpoint and not name.startswith("@") else None
