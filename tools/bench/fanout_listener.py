"""The listeners: `python fanout_listener.py ENDPOINT SERVER_KEY CONNECTIONS MESSAGES`.

They connect, say hello, count, say "all read", and end; also when nothing comes any more.
"""

import sys

import msgspec
import zmq

_PATIENCE_MS = 30_000


def listen(endpoint: str, server_key: bytes, fan: int, each: int) -> None:
    """Read as many messages on as many connections."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    poller, left = zmq.Poller(), fan * each
    hello = msgspec.msgpack.encode({"id": 1, "event": "message:subscribe"})
    public_key, secret_key = zmq.curve_keypair()
    for _ in range(fan):
        socket = context.socket(zmq.DEALER)
        socket.set_hwm(0)
        socket.curve_serverkey = server_key
        socket.curve_publickey, socket.curve_secretkey = public_key, secret_key
        socket.connect(endpoint)
        socket.send_multipart([b"R1", b"Q", hello])
        poller.register(socket, zmq.POLLIN)
    while left and (ready := poller.poll(_PATIENCE_MS)):
        for socket, _ in ready:
            while socket.get(zmq.EVENTS) & zmq.POLLIN:
                left -= socket.recv_multipart()[1] == b"E"
    print("nothing came" if left else "all read", flush=True)
    context.destroy(linger=0)


if __name__ == "__main__":
    listen(sys.argv[1], sys.argv[2].encode(), int(sys.argv[3]), int(sys.argv[4]))
