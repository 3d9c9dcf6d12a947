"""The load of the socket benchmark: `python socket_load.py KIND ADDRESS CLIENTS IN_FLIGHT SECONDS`.

Keeps so many requests in flight on so many connections, and prints how many were answered.
"""

import asyncio  # noqa: TID251 - a peer is loaded in its own idiom
import sys
from time import perf_counter

import msgspec

from remit_client.wire import Request

QUESTION = {"event": "state:get"}


def zmq_load(address: str, clients: int, in_flight: int, seconds: float) -> int:
    """Dealers in one thread; the address may be `endpoint,server key,public key,secret key`."""
    import zmq

    endpoint, *keys = address.split(",")
    context = zmq.Context()
    poller = zmq.Poller()
    data = msgspec.Raw(msgspec.msgpack.encode(QUESTION))
    frames = [
        b"R1", b"Q", msgspec.msgpack.encode(Request(1, "permission:check", data))
    ]  # fmt: skip
    sockets = []
    for _ in range(clients):
        socket = context.socket(zmq.DEALER)
        if keys:
            socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = (
                key.encode() for key in keys
            )
        socket.connect(endpoint)
        sockets.append(socket)
        poller.register(socket, zmq.POLLIN)
    for socket in sockets:
        for _ in range(in_flight):
            socket.send_multipart(frames)
    for socket in sockets:  # connected, and warm
        socket.recv_multipart()
        socket.send_multipart(frames)
    print("go", flush=True)
    answered, end = 0, perf_counter() + seconds
    while perf_counter() < end:
        for socket, _ in poller.poll(1000):
            received = 0
            try:
                while received < in_flight:
                    socket.recv(zmq.NOBLOCK)
                    socket.recv()
                    socket.recv()
                    received += 1
            except zmq.Again:
                pass
            for _ in range(received):
                socket.send(frames[0], zmq.SNDMORE)
                socket.send(frames[1], zmq.SNDMORE)
                socket.send(frames[2])
            answered += received
    return answered


async def _http(address: str, clients: int, in_flight: int, seconds: float) -> int:
    """HTTP/1.1 has one request in flight a connection, so there are clients x in_flight of them."""
    body = msgspec.json.encode(QUESTION)
    head = f"POST /check HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    answered, end = 0, perf_counter() + seconds + 0.3

    async def client() -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address))
        while perf_counter() < end:
            writer.write(head + body)
            headers = await reader.readuntil(b"\r\n\r\n")
            length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            answered += 1
        writer.close()

    print("go", flush=True)
    await asyncio.gather(*(client() for _ in range(min(clients * in_flight, 512))))
    return answered


async def _nats(address: str, clients: int, in_flight: int, seconds: float) -> int:
    import nats

    body = msgspec.msgpack.encode(QUESTION)
    answered, end = 0, perf_counter() + seconds + 0.3

    async def client(connection: object) -> None:
        nonlocal answered
        while perf_counter() < end:
            await connection.request("check", body, timeout=10)  # type: ignore[attr-defined]
            answered += 1

    connections = [await nats.connect(address) for _ in range(clients)]
    print("go", flush=True)
    await asyncio.gather(*(client(c) for c in connections for _ in range(in_flight)))
    for connection in connections:
        await connection.close()
    return answered


def main() -> None:
    """Run one load."""
    kind, address, *numbers = sys.argv[1:]
    clients, in_flight, seconds = int(numbers[0]), int(numbers[1]), float(numbers[2])
    if kind == "zmq":
        print(zmq_load(address, clients, in_flight, seconds))
    else:
        load = _http if kind == "http" else _nats
        print(asyncio.run(load(address, clients, in_flight, seconds)))


if __name__ == "__main__":
    main()
