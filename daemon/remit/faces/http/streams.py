"""Server-sent events: what happens and its reader may see, on a connection that stays open.

Order: events of one stream arrive in the order in which they happened. Back-pressure: a stream that
is read too slowly misses events, counted and told by a `gap`; one that is not read at all is cut.
A stream ends as soon as the token that opened it does not count any more.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable

import anyio
import anyio.lowlevel
import msgspec

from remit.faces.http.responses import problem
from remit.faces.http.server import HttpLimits, HttpStats
from remit.kernel.dispatch.call import Guard
from remit.model.event import Notice
from remit.model.principal import Bearer
from remit_client.wire import Gap, Push

_HEARTBEAT = b": still here\n\n"
_OPENING = b"retry: 2000\n\n"
_PIECE_BYTES = 65_536


class Stream:
    """One open stream: who reads it, and what waits for it."""

    __slots__ = ("abort", "bearer", "gone", "missed", "name", "news", "seq", "size", "stuck",
                 "waiting")  # fmt: skip

    def __init__(self, bearer: Bearer, abort: Callable[[], None]) -> None:
        self.name = bearer.principal.id
        self.bearer = bearer
        self.abort = abort
        self.gone = False
        self.stuck = False
        """Whether a piece was handed over and is not sent yet."""
        self.missed = 0
        self.seq = 0
        self.size = 0
        self.waiting: deque[bytes] = deque()
        self.news = anyio.Event()

    def end(self) -> None:
        """Stop; a reader that does not read would keep the connection open, so that is cut."""
        self.gone = True
        self.news.set()
        if self.stuck:
            self.abort()


class Streams:
    """Every open stream, by the name of its reader."""

    def __init__(self, guard: Guard, *, limits: HttpLimits, stats: HttpStats) -> None:
        self._guard = guard
        self._limits = limits
        self._stats = stats
        self._by_name: dict[str, set[Stream]] = {}
        self._closing = False
        self._last: tuple[Notice, bytes] | None = None
        self.on_arrival: Callable[[Stream], None] = lambda _stream: None
        self.on_gone: Callable[[Stream], None] = lambda _stream: None

    def open(self, bearer: Bearer, abort: Callable[[], None]) -> Stream:
        """Begin a stream.

        Raises:
            ProblemError: its reader has too many, or the daemon stops.
        """
        if self._closing:
            raise problem("cancelled", "the daemon is stopping")
        name = bearer.principal.id
        if len(self._by_name.get(name, ())) >= self._limits.streams:
            message = f"{self._limits.streams} streams of this client are open"
            raise problem("limit_exceeded", message, "close one first", retry_after=1.0)
        stream = Stream(bearer, abort)
        self._by_name.setdefault(name, set()).add(stream)
        self._stats.streams += 1
        self.on_arrival(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """Forget a stream."""
        members = self._by_name.get(stream.name, set())
        if stream not in members:
            return
        members.discard(stream)
        if not members:
            del self._by_name[stream.name]
        self._stats.streams -= 1
        stream.gone = True
        stream.waiting.clear()
        self.on_gone(stream)

    def named(self, name: str) -> tuple[Stream, ...]:
        """The streams of one principal."""
        return tuple(self._by_name.get(name, ()))

    def end(self, name: str) -> int:
        """End the streams of a principal; tell how many there were."""
        return self._end(self.named(name))

    def end_token(self, hash_: str) -> int:
        """End the streams that one token opened."""
        every = (one for found in self._by_name.values() for one in found)
        return self._end([one for one in every if one.bearer.token.hash == hash_])

    def end_all(self) -> None:
        """End every stream, and take no more."""
        self._closing = True
        self._end([one for found in self._by_name.values() for one in found])

    def _end(self, streams: "list[Stream] | tuple[Stream, ...]") -> int:
        for stream in streams:
            stream.end()
        self._stats.cut += len(streams)
        return len(streams)

    def push(self, stream: Stream, notice: Notice) -> bool:
        """Let an event wait for its reader; False when it is missed."""
        if stream.gone:
            return False
        stream.seq += 1
        body = self._body(notice)
        room = self._limits.backlog_bytes - stream.size
        if len(stream.waiting) >= self._limits.backlog or len(body) > room:
            stream.missed += 1
            self._stats.dropped += 1
            return False
        piece = b"id: %d\nevent: %s\ndata: %s%d%s\n\n" % (
            stream.seq, notice.event.encode(), b'{"seq":', stream.seq, body
        )  # fmt: skip
        stream.waiting.append(piece)
        stream.size += len(piece)
        stream.news.set()
        return True

    def _body(self, notice: Notice) -> bytes:
        """Encoded once, however many streams the same notice goes to; all behind the number."""
        if self._last is None or self._last[0] is not notice:
            push = Push(0, notice.event, notice.data, notice.origin, notice.at)
            self._last = (notice, msgspec.json.encode(push).removeprefix(b'{"seq":0'))
        return self._last[1]

    async def pieces(self, stream: Stream) -> AsyncGenerator[bytes]:
        """What goes to the reader, until the stream ends."""
        stream.stuck = True
        yield _OPENING
        stream.stuck = False
        while not stream.gone and self._guard.still(stream.bearer):
            # A stream that always has news would never notice that its reader is gone.
            await anyio.lowlevel.checkpoint_if_cancelled()
            piece = self._next(stream) or await self._wait(stream)
            if piece:
                stream.stuck = True
                yield piece
                stream.stuck = False

    def _next(self, stream: Stream) -> bytes:
        parts: list[bytes] = []
        size = 0
        while stream.waiting and size < _PIECE_BYTES:
            parts.append(stream.waiting.popleft())
            size += len(parts[-1])
        stream.size -= size
        if stream.missed and not stream.waiting:
            parts.append(b"event: gap\ndata: " + msgspec.json.encode(Gap(stream.missed)) + b"\n\n")
            stream.missed = 0
        return b"".join(parts)

    async def _wait(self, stream: Stream) -> bytes:
        """Wait for news; nothing when there are some, else a sign of life."""
        stream.news = anyio.Event()
        left = self._guard.seconds_left(stream.bearer)
        with anyio.move_on_after(min(self._limits.heartbeat_seconds, left)):
            await stream.news.wait()
            return b""
        return _HEARTBEAT
