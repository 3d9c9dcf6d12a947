"""What the head of an answer says about what is fetched, as far as it can be believed."""

import posixpath
import re
from collections.abc import Iterable
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


class Head(msgspec.Struct, frozen=True):
    """The status of an answer and its headers; of one that came twice the first counts."""

    status: int
    headers: dict[str, str]

    @classmethod
    def read(cls, status: int, headers: Iterable[tuple[bytes, bytes]]) -> "Head":
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
