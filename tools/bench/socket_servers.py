"""The peers of the socket benchmark, one process each: `python socket_servers.py NAME ADDRESS`.

Every one decodes a request, looks the event up in a frozenset and encodes an answer, so that they
differ in how a message travels and not in what is done with it.
"""

import asyncio  # noqa: TID251 - a peer is written in its own idiom
import sys

import msgspec

from remit_client.wire import Answer, Request

ALLOWED = frozenset(f"state:event_{n}" for n in range(200)) | {"state:get"}


class Question(msgspec.Struct):
    """What a permission check carries."""

    event: str


def zmq_echo(address: str) -> None:
    """The floor: a blocking ROUTER, frame by frame, with the same codec and the same CURVE."""
    import zmq

    endpoint, _, secret = address.partition(",")
    socket = zmq.Context().socket(zmq.ROUTER)
    if secret:
        socket.curve_server = True
        socket.curve_secretkey = secret.encode()
    socket.bind(endpoint)
    print("ready", flush=True)
    request, question = msgspec.msgpack.Decoder(Request), msgspec.msgpack.Decoder(Question)
    encode = msgspec.msgpack.Encoder().encode
    while True:
        peer = socket.recv()
        version = socket.recv()
        socket.recv()
        asked = request.decode(socket.recv())
        event = question.decode(asked.data).event
        verdict = {"allowed": event in ALLOWED, "reason": "granted", "event": event, "revision": 1}
        socket.send(peer, zmq.SNDMORE)
        socket.send(version, zmq.SNDMORE)
        socket.send(b"A", zmq.SNDMORE)
        socket.send(encode(Answer(asked.id, ok=True, data=verdict, decision="d-1", revision=1)))


def http(address: str) -> None:
    """uvicorn and starlette with JSON."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response
    from starlette.routing import Route

    async def check(request: HttpRequest) -> Response:
        event = msgspec.json.decode(await request.body(), type=Question).event
        verdict = {"allowed": event in ALLOWED, "reason": "granted", "event": event, "revision": 1}
        return Response(msgspec.json.encode(verdict), media_type="application/json")

    app = Starlette(routes=[Route("/check", check, methods=["POST"])])
    config = uvicorn.Config(app, port=int(address), log_level="error", access_log=False)
    server = uvicorn.Server(config)

    async def serve() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print("ready", flush=True)
        await serving

    asyncio.run(serve())


def nats(address: str) -> None:
    """A responder behind a NATS server."""
    import nats as client
    from nats.aio.msg import Msg

    async def serve() -> None:
        connection = await client.connect(address)

        async def check(message: Msg) -> None:
            event = msgspec.msgpack.decode(message.data, type=Question).event
            verdict = {"allowed": event in ALLOWED, "reason": "granted", "event": event}
            await message.respond(msgspec.msgpack.encode(verdict))

        await connection.subscribe("check", cb=check)
        await connection.flush()
        print("ready", flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    {"zmq": zmq_echo, "http": http, "nats": nats}[sys.argv[1]](sys.argv[2])
