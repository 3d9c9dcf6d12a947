"""Who may finish a handshake: the ZAP side of CURVE.

libzmq asks this handler about every connection. It is ours, and not `zmq.auth`'s, because that one
brings `zmq.asyncio` along (14 MB) and answers from copies of the keys, not the live directory.
"""

from collections.abc import Callable

import anyio
import structlog
import zmq
from zmq.utils import z85

from remit.faces.zmq.limits import Stats
from remit.kernel.dispatch.call import Directory

ZAP_DOMAIN = b"remit"
_ENDPOINT = "inproc://zeromq.zap.01"
_VERSION = b"1.0"
_CURVE_FRAMES = 7
_CROWDED = b"500"
"""Not 300: libzmq would neither answer the client nor let it go."""

log = structlog.get_logger()


class Authenticator:
    """Admits the holders of living keys; the User-Id of a connection is its public key.

    Not the holder's name: a name that was revoked and given a new key must not revive a
    connection that was made with the old one.
    """

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        directory: Directory,
        stats: Stats,
        is_crowded: Callable[[str], bool],
    ) -> None:
        self._directory = directory
        self._is_crowded = is_crowded
        self._stats = stats
        self._socket = context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind(_ENDPOINT)

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
            return [_VERSION, request_id, b"400", b"unknown key", b"", b""]
        if user == _CROWDED:
            self._stats.crowded += 1
            return [_VERSION, request_id, _CROWDED, b"too many connections", b"", b""]
        self._stats.admitted += 1
        return [_VERSION, request_id, b"200", b"OK", user, b""]

    def _admit(self, frames: list[bytes]) -> bytes | None:
        """The key of a connection, a status when there are too many, None when nobody holds it."""
        if len(frames) != _CURVE_FRAMES or frames[0] != _VERSION:
            return None
        _, _, domain, address, _, mechanism, credentials = frames
        if domain != ZAP_DOMAIN or mechanism != b"CURVE":
            return None
        key = z85.encode(credentials)
        name = self._directory.name_of_key(key.decode())
        if name is None:
            log.warning("key_refused", public_key=key.decode(), address=address.decode("latin-1"))
            return None
        return _CROWDED if self._is_crowded(name) else key
