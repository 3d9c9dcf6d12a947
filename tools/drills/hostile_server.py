"""A web server that means no good: each path is another way to harm whoever fetches from it."""

import gzip
import itertools
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketStream

Play = Callable[[SocketStream], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
MEGABYTE = 1 << 20


def says(data: bytes) -> Play:
    """Send it all at once, then close."""

    async def play(stream: SocketStream) -> None:
        await stream.send(data)

    return play


def says_and_waits(data: bytes) -> Play:
    """Send it, and never close."""

    async def play(stream: SocketStream) -> None:
        await stream.send(data)
        await anyio.sleep_forever()

    return play


def repeats(start: bytes, piece: bytes, pause: float = 0.0) -> Play:
    """Send a start, and then the same piece for ever."""

    async def play(stream: SocketStream) -> None:
        await stream.send(start)
        while True:
            await stream.send(piece)
            await anyio.sleep(pause)

    return play


def moved(location: bytes, status: int = 302) -> Play:
    """Send somewhere else."""
    head = f"HTTP/1.1 {status} Moved\r\ncontent-length: 0\r\nlocation: ".encode()
    return says(head + location + b"\r\n\r\n")


def page(body: bytes, headers: bytes = b"content-type: text/html") -> Play:
    """A proper answer with a body that is not."""
    length = str(len(body)).encode()
    return says(
        b"HTTP/1.1 200 OK\r\n" + headers + b"\r\ncontent-length: " + length + b"\r\n\r\n" + body
    )


def squeezed(data: bytes, wbits: int) -> bytes:
    """Compress in one of zlib's ways."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return packer.compress(data) + packer.flush()


def answers() -> dict[str, Play]:
    """Everything that ends by itself or at a limit of size, by path."""
    zeros = b"0" * (64 * MEGABYTE)
    bomb = gzip.compress(zeros)
    return {
        # heads that never come, or never end
        "silent": says_and_waits(b""),
        "half-a-line": says_and_waits(b"HTTP/1."),
        "slow-loris": repeats(HEAD, b"x: y\r\n", 0.01),
        "one-byte-at-a-time": repeats(b"H", b"T", 0.01),
        "endless-header": repeats(HEAD + b"x: ", b"y" * 65536),
        "many-headers": repeats(HEAD, b"x: y\r\n" * 5000),
        "huge-header": says(HEAD + b"x: " + b"y" * MEGABYTE + b"\r\n\r\nbody"),
        "1xx-flood": repeats(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        "100-flood": repeats(b"", b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n"),
        "101": says_and_waits(
            b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"
        ),
        # no HTTP at all
        "http-0.9": says(b"<html>hello</html>"),
        "nothing": says(b""),
        "tls": says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64)),
        "ssh": says(b"SSH-2.0-OpenSSH_9.6\r\n"),
        "http-2": says(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        "noise": says(bytes(range(256)) * 64),
        "nul-in-header": says(b"HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\nbody"),
        "status-0": says(b"HTTP/1.1 000 X\r\n\r\n"),
        "status-letters": says(b"HTTP/1.1 abc X\r\n\r\n"),
        "http-9": says(b"HTTP/9.9 200 OK\r\n\r\n"),
        "folded": says(HEAD + b"x: a\r\n b\r\n c\r\n\r\nbody"),
        "bare-cr": says(b"HTTP/1.1 200 OK\rx: y\r\rbody"),
        # lengths that lie
        "length-too-long": says(PLAIN + b"content-length: 999999\r\n\r\nshort"),
        "length-too-short": says(PLAIN + b"content-length: 2\r\n\r\nlonger than that"),
        "length-negative": says(PLAIN + b"content-length: -5\r\n\r\nhello"),
        "length-huge": says(PLAIN + b"content-length: " + b"9" * 30 + b"\r\n\r\nhello"),
        "length-twice": says(PLAIN + b"content-length: 1\r\ncontent-length: 2\r\n\r\nhello"),
        "length-and-chunks": says(
            PLAIN
            + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ),
        "chunk-garbage": says(PLAIN + b"transfer-encoding: chunked\r\n\r\nZZ\r\nhello\r\n"),
        "chunk-huge": says(PLAIN + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nhello"),
        "chunk-negative": says(PLAIN + b"transfer-encoding: chunked\r\n\r\n-1\r\nhello\r\n"),
        "chunk-endless-line": repeats(PLAIN + b"transfer-encoding: chunked\r\n\r\n", b"1" * 65536),
        "chunk-endless-extension": repeats(
            PLAIN + b"transfer-encoding: chunked\r\n\r\n5;", b"x=y;" * 8192
        ),
        "chunk-one-byte-each": repeats(
            PLAIN + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10000
        ),
        "transfer-unknown": says(PLAIN + b"transfer-encoding: gzip\r\n\r\nhello"),
        # bodies that are too much
        "endless": repeats(PLAIN + b"\r\n", b"word " * 13107),
        "endless-html": repeats(HEAD + b"\r\n", b"<p>word</p>" * 5957),
        "gzip-bomb": page(bomb, b"content-type: text/plain\r\ncontent-encoding: gzip"),
        "gzip-bomb-html": page(bomb, b"content-type: text/html\r\ncontent-encoding: gzip"),
        "gzip-twice": page(
            gzip.compress(bomb), b"content-type: text/plain\r\ncontent-encoding: gzip, gzip"
        ),
        "deflate-bomb": page(
            squeezed(zeros, 15), b"content-type: text/plain\r\ncontent-encoding: deflate"
        ),
        "raw-deflate-bomb": page(
            squeezed(zeros, -15), b"content-type: text/plain\r\ncontent-encoding: deflate"
        ),
        "gzip-empty-blocks": repeats(
            PLAIN + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"x")[:10],
            b"\0\0\0\xff\xff" * 10000,
        ),
        "gzip-garbage": page(b"not gzip", b"content-type: text/plain\r\ncontent-encoding: gzip"),
        "gzip-cut": page(bomb[:1000], b"content-type: text/plain\r\ncontent-encoding: gzip"),
        "brotli": page(b"\x8b\x02\x80hello", b"content-type: text/plain\r\ncontent-encoding: br"),
        # texts that are not what they say
        "wrong-charset": page(b"\xff\xfe\xfd caf\xe9", b"content-type: text/html; charset=utf-8"),
        "charset-of-python": page(b"\\u0041", b"content-type: text/html; charset=unicode_escape"),
        "charset-zlib": page(
            squeezed(b"0" * MEGABYTE, 15), b"content-type: text/html; charset=zlib"
        ),
        "charset-utf-7": page(b"+ADw-script+AD4-", b"content-type: text/html; charset=utf-7"),
        "charset-wrong-bytes": page(
            b"\x81" * 5_000_000, b"content-type: text/html; charset=cp1252"
        ),
        "controls": page(b"\x01\x1b[2J" * 100_000, b"content-type: text/plain"),
        "elf-as-text": page(b"\x7fELF\0\0\0", b"content-type: text/plain"),
        "picture": page(b"\x89PNG" * 1000, b"content-type: image/png"),
        "endless-picture": repeats(
            b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n", b"x" * 65536
        ),
        "filename-path": page(
            b"x", b'content-type: text/plain\r\ncontent-disposition: a; filename="../../etc/x"'
        ),
        # pages that no parser likes
        "deep-div": page(b"<div>" * 1_000_000),
        "deep-quote": page(b"<blockquote>" * 400_000),
        "deep-list": page(b"<ul><li>" * 600_000),
        "deep-font": page(b"<p><font>" * 500_000),
        "wide-table": page(b"<table><tr>" + b"<td>x" * 900_000),
        "open-tags": page(b"<" * 4_900_000),
        "long-attribute": page(b"<a href='" + b"x" * 4_900_000 + b"'>y</a>"),
        "misnested": page(b"<b><i></b></i>" * 350_000),
        # redirects
        "loop": moved(b"/loop"),
        "pair": moved(b"/pair-2"),
        "pair-2": moved(b"/pair", 307),
        "to-file": moved(b"file:///etc/passwd"),
        "to-ftp": moved(b"ftp://127.0.0.1/"),
        "to-data": moved(b"data:text/html,hello"),
        "to-javascript": moved(b"javascript:alert(1)"),
        "to-metadata": moved(b"http://169.254.169.254/latest/meta-data/"),
        "to-metadata-6": moved(b"http://[fd00:ec2::254]/latest/meta-data/"),
        "to-any": moved(b"http://0.0.0.0/"),
        "to-decimal": moved(b"http://2130706433/"),
        "to-user": moved(b"http://a:b@127.0.0.1/"),
        "to-noise": moved(bytes(range(128, 256)) * 10),
        "to-long": moved(b"/" + b"a" * 60_000),
        "to-backslash": moved(b"http:\\\\127.0.0.1\\"),
        "to-nothing": moved(b""),
    }


LASTING: dict[str, Play] = {
    "drip": repeats(PLAIN + b"\r\n", b"x", 0.2),
    "stalled": says_and_waits(HEAD + b"content-length: 100\r\n\r\n<p>the first part"),
}
"""Bodies that use up the whole half minute."""


class HostileServer:
    """Serves the plays, and counts who comes to the canary, which nobody may reach."""

    def __init__(self) -> None:
        self.plays = answers() | LASTING
        self.connections = itertools.count()
        self.port = 0

    async def handle(self, stream: SocketStream) -> None:
        """Play what the path names."""
        next(self.connections)
        async with stream:
            try:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += await stream.receive()
                path = head.split(b" ")[1].decode("latin-1").strip("/")
                await self.plays.get(path, page(b"hello"))(stream)
                await stream.send_eof()
            except (anyio.BrokenResourceError, anyio.EndOfStream, OSError):
                return  # the other side had enough


@asynccontextmanager
async def serving() -> AsyncGenerator[HostileServer]:
    """Serve on a port of loopback."""
    server = HostileServer()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        server.port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.handle)
            yield server
            tasks.cancel_scope.cancel()
