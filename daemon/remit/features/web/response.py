"""An answer of a web server: what its head says, as far as it can be believed, and its body.

The body is decompressed as it comes and never beyond a limit.
"""

import posixpath
import re
import zlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

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


_GZIP = 31
_ZLIB = 15
_RAW = -15
CHUNKS = 50_000
"""Of a body: five megabytes in chunks of one byte would keep a core busy for half a minute."""


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
