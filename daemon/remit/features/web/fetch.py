"""Fetching from hosts that nobody trusts: every hop is checked, every wait and every byte counted.

No cookies, no proxy, no password and nothing else of the environment goes along. httpcore is used
without httpx around it, because all that httpx adds would have to be switched off here. A body is
decompressed as it comes and never beyond a limit.
"""

import posixpath
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from ssl import SSLContext
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import anyio
import anyio.lowlevel
import httpcore
import httpx
import msgspec

from remit import __version__
from remit.errors import DeniedError, FetchError, InvalidDataError
from remit.features.web.target import CheckedBackend, Target, parse_target
from remit.model.paths import HostRules

Method = Literal["GET", "HEAD"]
Cut = Literal["", "time", "size", "broken"]

REDIRECTS = 5
_HEADERS = (
    ("User-Agent", f"remit/{__version__} (web_fetch)"),
    ("Accept", "text/html, text/markdown, text/plain, application/json, */*;q=0.5"),
    ("Accept-Encoding", "gzip, deflate"),  # what can be decompressed under a limit
    ("Connection", "close"),
)
_ENCODINGS = frozenset({"", "gzip", "x-gzip", "deflate"})
_BODILESS = frozenset({204, 205, 304})
_TEXT_LIMIT = 256
_SPACE = re.compile(r"[\x00-\x20\x7f-\x9f]+")
_TEXTUAL = frozenset(
    {
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/x-javascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/x-ndjson",
        "application/jsonl",
        "application/sql",
        "application/graphql",
        "application/x-sh",
        "application/x-httpd-php",
        "application/rtf",
        "application/x-www-form-urlencoded",
        "application/typescript",
        "message/rfc822",
    }
)
_UNSTATED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_MOVED = frozenset({301, 302, 303, 307, 308})
_PARAMETER = re.compile(
    r";\s*(filename\*?|charset)\s*=\s*(\"(?:[^\"\\]|\\.){0,512}\"|[^;\s]{0,512})", re.IGNORECASE
)
_OTHER_SETS = re.compile(r"(utf-8|iso-8859-1)'[^']*'(.*)", re.IGNORECASE)
_GZIP = 31
_ZLIB = 15
_RAW = -15
CHUNKS = 50_000
"""Of a body: five megabytes in chunks of one byte would keep a core busy for half a minute."""


class ResponseHead(msgspec.Struct, frozen=True):
    """The status of an answer and its headers; of one that came twice the first counts."""

    status: int
    headers: dict[str, str]

    @classmethod
    def read(cls, status: int, headers: Iterable[tuple[bytes, bytes]]) -> "ResponseHead":
        """Take in what came over the wire."""
        found: dict[str, str] = {}
        for name, value in headers:
            found.setdefault(name.decode("latin-1").lower(), _text(value))
        return cls(status, found)

    @property
    def location(self) -> str | None:
        """Where it says to look instead, if it does."""
        return self.headers.get("location") if self.status in _MOVED else None

    @property
    def encoding(self) -> str:
        """How its body is compressed; empty: not at all."""
        found = self.headers.get("content-encoding", "").strip().lower()
        return "" if found == "identity" else found

    @property
    def kind(self) -> str:
        """Its media type without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def content_type(self) -> str | None:
        """Its media type as it was given."""
        return _shown(self.headers.get("content-type", "")) or None

    @property
    def charset(self) -> str:
        """The charset that it states, if any."""
        return _parameters(self.headers.get("content-type", "")).get("charset", "")

    @property
    def last_modified(self) -> str | None:
        """When it says that it was changed."""
        return _shown(self.headers.get("last-modified", "")) or None

    @property
    def stated_size(self) -> int | None:
        """How long it says its body is."""
        text = self.headers.get("content-length", "")
        return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None

    @property
    def is_textual(self) -> bool:
        """Tell whether the media type promises text, or leaves the question open."""
        kind = self.kind
        listed = kind in _TEXTUAL or kind in _UNSTATED
        return listed or kind.startswith("text/") or kind.endswith(("+json", "+xml"))

    def is_page(self, start: bytes) -> bool:
        """Tell whether the body is HTML; `start` decides when the media type says nothing."""
        if self.kind not in _UNSTATED:
            return self.kind in _PAGES
        return start.lstrip()[:16].lower().startswith((b"<!doctype html", b"<html"))

    def filename(self, url: str) -> str | None:
        """The name it would be saved by; never a path."""
        stated = _parameters(self.headers.get("content-disposition", ""))
        name = _decoded(stated.get("filename*", "")) or stated.get("filename", "")
        return _base(name) or _base(unquote(urlsplit(url).path)) or None


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _shown(text: str) -> str:
    return _SPACE.sub(" ", text).strip()[:_TEXT_LIMIT]


def _parameters(header: str) -> dict[str, str]:
    found = _PARAMETER.findall(header[:4096])
    return {name.lower(): _unquoted(value) for name, value in reversed(found)}


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


def _decoded(value: str) -> str:
    found = _OTHER_SETS.fullmatch(value)
    return unquote(found[2], found[1].lower(), "replace") if found else ""


def _base(name: str) -> str:
    last = posixpath.basename(name.replace("\\", "/").rstrip("/"))
    shown = _shown(last)
    return "" if shown in {".", ".."} else shown


class Body:
    """Takes chunks in until there is enough.

    Compressed data are counted too: a stream of empty blocks never becomes any text.
    """

    def __init__(self, encoding: str, *, limit: int) -> None:
        self.data = bytearray()
        self.is_full = False
        self.is_broken = False
        self._limit = limit
        self._taken = 0
        self._chunks = 0
        self._is_deflate = encoding == "deflate"
        self._stream: Any = None
        if encoding in {"gzip", "x-gzip", "deflate"}:
            self._stream = zlib.decompressobj(_ZLIB if self._is_deflate else _GZIP)

    @property
    def wants_more(self) -> bool:
        """Tell whether a further chunk would be of use."""
        return not (self.is_full or self.is_broken or (self._stream and self._stream.eof))

    def feed(self, chunk: bytes) -> None:
        """Take in a chunk."""
        room = self._limit - self._taken
        self._taken += len(chunk)
        self._chunks += 1
        if len(chunk) > room or self._chunks > CHUNKS:
            self.is_full, chunk = True, chunk[:room]
        if self._stream is None:
            self.data += chunk
            return
        try:
            self._inflate(chunk)
        except zlib.error:
            self.is_broken = True

    def end(self) -> None:
        """No more chunks come: a stream that was not finished is a broken one."""
        if self._stream is not None and not self._stream.eof and not self.is_full:
            self.is_broken = True

    def _inflate(self, chunk: bytes) -> None:
        room = self._limit - len(self.data)
        try:
            piece = self._stream.decompress(chunk, room + 1)
        except zlib.error:
            if not self._is_deflate or self.data:
                raise
            # Half of those who say deflate leave out its header.
            self._stream = zlib.decompressobj(_RAW)
            piece = self._stream.decompress(chunk, room + 1)
        self.data += piece[:room]
        self.is_full = self.is_full or len(piece) > room


class Bounds(msgspec.Struct, frozen=True):
    """Bounds on the time and the size of a fetch."""

    first_byte: float = 1.0
    """Seconds of a hop until its head is there: name, connection, handshake and all."""
    body: float = 30.0
    size: int = 5_000_000
    """Bytes of a body, both before and after it is decompressed."""


class FetchResult(msgspec.Struct, frozen=True):
    """The answer of a web server."""

    url: str
    """Where it came from in the end."""
    head: ResponseHead
    body: bytes | None = None
    """None: there is none, or none that could be read as text."""
    cut: Cut = ""


class Fetcher:
    """Fetches for one caller."""

    def __init__(
        self,
        rules: Sequence[HostRules] = (),
        *,
        private: bool = False,
        bounds: Bounds | None = None,
        backend: Callable[[], httpcore.AsyncNetworkBackend] | None = None,
    ) -> None:
        """Prepare.

        Args:
            rules: those of the operator and of this caller; each must agree.
            private: also loopback and private networks, on any port.
            bounds: how long and how much.
            backend: makes connections; tests bring their own.
        """
        self._private = private
        self._rules = tuple(rules)
        self._bounds = bounds or Bounds()
        self._backend = backend or self._checked

    async def fetch(self, url: str, method: Method = "GET") -> FetchResult:
        """Fetch, over up to five redirects.

        Raises:
            InvalidDataError: the URL is not one that is fetched from.
            DeniedError: the host, or one that it leads to, may not be asked.
            FetchError: nothing came of it.
        """
        target = parse_target(url, any_port=self._private)
        for _ in range(REDIRECTS + 1):
            self._check(target)
            found = await self._hop(target, method)
            location = found.head.location
            if not location:
                return found
            try:
                target = target.follow(location, any_port=self._private)
            except InvalidDataError as error:
                message = f"{target.name!r} leads to where nothing is fetched: {error.message}"
                raise FetchError(message, reason="redirect") from error
        message = f"{target.name!r} leads on after {REDIRECTS} redirects"
        raise FetchError(message, reason="redirect")

    def _checked(self) -> httpcore.AsyncNetworkBackend:
        return CheckedBackend(private=self._private)

    def _check(self, target: Target) -> None:
        if not all(rule.allow(target.name) for rule in self._rules):
            message = f"the host {target.host!r} is not one that you may fetch from"
            raise DeniedError(message, reason="limit", hint="an operator lists hosts")

    async def _hop(self, target: Target, method: Method) -> FetchResult:
        pool = httpcore.AsyncConnectionPool(
            ssl_context=_ssl_context() if target.scheme == "https" else None,
            max_connections=1,
            max_keepalive_connections=0,
            network_backend=self._backend(),
        )
        async with pool:
            response = await self._ask(pool, target, method)
            try:
                return await self._read(target, method, response)
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(self._bounds.first_byte):
                    await response.aclose()

    async def _ask(
        self, pool: httpcore.AsyncConnectionPool, target: Target, method: Method
    ) -> httpcore.Response:
        try:
            with anyio.fail_after(self._bounds.first_byte):
                return await pool.handle_async_request(_request(target, method))
        except (TimeoutError, httpcore.TimeoutException) as error:
            seconds = f"{self._bounds.first_byte:g}"
            unit = "second" if seconds == "1" else "seconds"
            message = f"server did not respond within {seconds} {unit}"
            raise FetchError(message, reason="timeout") from error
        except (httpcore.NetworkError, OSError) as error:
            message = f"no connection to {target.name!r}: {str(error)[:200]}"
            raise FetchError(message, reason="connection") from error
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol, ValueError) as error:
            message = f"{target.name!r} does not speak HTTP: {str(error)[:200]}"
            raise FetchError(message, reason="protocol") from error

    async def _read(
        self, target: Target, method: Method, response: httpcore.Response
    ) -> FetchResult:
        head = ResponseHead.read(response.status, response.headers)
        nothing = FetchResult(target.url, head)
        if head.location or method == "HEAD" or head.status in _BODILESS:
            return nothing
        if not head.is_textual or head.encoding not in _ENCODINGS:
            return nothing
        body = Body(head.encoding, limit=self._bounds.size)
        cut: Cut = "time"
        with anyio.move_on_after(self._bounds.body):
            cut = await _drain(response, body)
        return FetchResult(target.url, head, bytes(body.data), cut)


async def _drain(response: httpcore.Response, body: Body) -> Cut:
    """Read until the end, or until it is enough."""
    try:
        # Chunks as they come: with a size, what waits to be whole would be lost at the time-out.
        async for chunk in response.aiter_stream():
            body.feed(chunk)
            if not body.wants_more:
                break
            await anyio.lowlevel.checkpoint()  # a fast sender must not keep the loop to itself
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError):
        return "broken"
    body.end()
    if body.is_full:
        return "size"
    return "broken" if body.is_broken else ""


def _request(target: Target, method: Method) -> httpcore.Request:
    url = httpcore.URL(
        scheme=target.scheme.encode(),
        host=target.host.encode(),
        port=target.port,
        target=target.path,
    )
    usual = httpx.URL(target.url).netloc
    headers: list[tuple[Any, Any]] = [("Host", usual), *_HEADERS]
    return httpcore.Request(method, url, headers=headers)


@cache
def _ssl_context() -> SSLContext:
    """Made once: reading the authorities takes longer than most pages."""
    return httpx.create_ssl_context(trust_env=False)
