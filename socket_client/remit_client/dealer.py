"""The client's socket: posting, fetching, and news of the connection. It never waits."""

import random
import struct

import zmq

from remit_client.address import SERVE_HINT, Address
from remit_client.codec import MAX_MESSAGE
from remit_client.errors import LimitExceeded, RemitError, Unauthorised, Unreachable
from remit_client.wire import MSGPACK_VERSION

CONNECT_SECONDS = 1.5
"""How long a call waits for a connection before the daemon counts as unreachable."""

_EVENT = struct.Struct("=hi")
_FRAMES = 3
_CROWDED = 500
"""How a handshake ends that is one connection too many; 400 is an unknown key."""
_WATCHED = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_DISCONNECTED
)
_BROKEN = (zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
# One broken handshake may be a daemon that was just stopping.
_BROKEN_HANDSHAKES = 2


class Dealer:
    """One connection to the daemon, which libzmq renews by itself."""

    def __init__(self, address: Address) -> None:
        self.up = False
        self.refusal: RemitError | None = None
        self._address = address
        self._broken = 0
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        _configure(self.socket, address)
        self.monitor: zmq.Socket[bytes] = self.socket.get_monitor_socket(_WATCHED)
        try:
            self.socket.connect(address.endpoint)
        except zmq.ZMQError as error:
            self.close()
            hint = "write it as ipc:///path/to/remit.sock or tcp://127.0.0.1:7700"
            message = f"{address.endpoint}: {error.strerror}"
            raise Unreachable(message, hint=hint) from error

    def close(self) -> None:
        """Close; what was posted still has a moment to leave."""
        self.socket.disable_monitor()
        self.monitor.close(linger=0)
        self.socket.close()

    def post(self, kind: bytes, body: bytes) -> bool:
        """Send one message; False when it cannot leave now."""
        try:
            self.socket.send_multipart((MSGPACK_VERSION, kind, body), zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def fetch(self) -> tuple[bytes, bytes] | None:
        """The next message as kind and body, or None when there is none."""
        while True:
            try:
                frames = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            if len(frames) == _FRAMES and frames[0] == MSGPACK_VERSION:
                return frames[1], frames[2]

    def has_news(self) -> bool:
        """Tell whether `fetch` has something; a send may have swallowed the signal."""
        return bool(int(self.socket.get(zmq.EVENTS)) & zmq.POLLIN)

    def catch_up(self) -> bool:
        """Read the news of the connection; tell whether one was lost."""
        lost = False
        while True:
            try:
                frames = self.monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return lost
            event, value = _EVENT.unpack(frames[0])
            lost = self._note(event, value) or lost

    def unreachable(self) -> Unreachable:
        """The error for a daemon that does not answer."""
        return Unreachable(f"no daemon answers at {self._address.endpoint}", hint=SERVE_HINT)

    def _note(self, event: int, value: int) -> bool:
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.up, self.refusal, self._broken = True, None, 0
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            name = self._address.key.name
            self.refusal = _crowded(name) if value == _CROWDED else _unknown(name, value)
        elif event in _BROKEN:
            self._broken += 1
            if self._broken >= _BROKEN_HANDSHAKES:
                message = f"the handshake with {self._address.endpoint} breaks off"
                hint = "is the server key that of this daemon? compare it with its server.pub"
                self.refusal = Unauthorised(message, hint=hint)
        elif event == zmq.EVENT_DISCONNECTED:
            was_up, self.up = self.up, False
            return was_up
        return False


def _crowded(name: str) -> RemitError:
    message = f"the daemon takes no more connections of {name!r}"
    hint = "close some, or ask the operator to raise max_connections_per_key"
    return LimitExceeded(message, hint=hint, details={"retry_after": 1.0})


def _unknown(name: str, status: int) -> RemitError:
    message = f"the daemon does not know the key of {name!r} ({status})"
    hint = "the operator registers one with: remit key new NAME --profile PROFILE"
    return Unauthorised(message, hint=hint)


def _configure(socket: "zmq.Socket[bytes]", address: Address) -> None:
    socket.curve_serverkey = address.server_key.encode()
    socket.curve_publickey = address.key.public_key.encode()
    socket.curve_secretkey = address.key.secret_key.encode()
    # Nothing is queued for a connection that is not there, or kept from one that broke: otherwise
    # a request whose failure was reported would be carried out after the reconnect.
    socket.setsockopt(zmq.IMMEDIATE, 1)
    # A handshake costs the daemon 0.65 ms: a fleet must not come back in step.
    socket.setsockopt(zmq.RECONNECT_IVL, random.randint(50, 150))  # noqa: S311
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1_000)
    socket.setsockopt(zmq.HANDSHAKE_IVL, 1_400)
    socket.setsockopt(zmq.HEARTBEAT_IVL, 5_000)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 20_000)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE)
    socket.setsockopt(zmq.LINGER, 100)
