"""What was fetched, made readable: text in one of three formats, or why there is none."""

import re
from typing import Any, Literal

import anyio.to_thread

from remit.features.web.charset import decode_page, find_codec
from remit.features.web.fetch import Cut, Fetched
from remit.features.web.markdown import UnreadablePageError, convert_page

CONTENT_BYTES = 480_000
"""Of an answer; one in which every sign is escaped still fits into a message."""
TIMED_OUT = "[..more content timed out...]"
LEFT_OUT = "[..more content left out...]"

_SNIFFED = 1024
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]+")
_TEXTS: dict[Cut, str] = {
    "broken": "the connection broke, or the content was damaged, before its end",
}


async def readable(fetched: Fetched, wanted: Literal["markdown", "text", ""]) -> dict[str, Any]:
    """The fields `format`, `content`, `truncated` and `error` of an answer."""
    body, head = fetched.body, fetched.head
    if body is None and head.status in {204, 205, 304}:
        return {"format": "raw", "content": ""}
    if body is None or _is_binary(body, head.charset):
        kind = head.kind or "unknown"
        how = f", encoded as {head.encoding[:40]!r}" if head.encoding else ""
        return {"error": f"binary content ({kind[:100]}{how}) is not supported; it was not read"}
    text = await anyio.to_thread.run_sync(
        lambda: decode_page(body, head.charset, is_cut=bool(fetched.cut)),
        abandon_on_cancel=True,
    )
    found: dict[str, Any] = {"format": "raw", "error": _TEXTS.get(fetched.cut)}
    if wanted and head.is_page(body[:_SNIFFED]):
        try:
            text = await convert_page(text, wanted, limit=CONTENT_BYTES + 1, base_url=fetched.url)
            found["format"] = wanted
        except UnreadablePageError as error:
            found["error"] = f"the page could not be converted, so it is as it came: {error}"
    return found | _fitted(text, fetched.cut)


def _is_binary(body: bytes, charset: str) -> bool:
    """Tell whether it is no text, whatever was said of it; UTF-16 is full of NUL bytes."""
    start = body[:_SNIFFED]
    wide = start.startswith((b"\xff\xfe", b"\xfe\xff")) or find_codec(charset).startswith("utf-16")
    return b"\0" in start and not wide


def _fitted(text: str, cut: Cut) -> dict[str, Any]:
    text = _CONTROLS.sub("", text)
    encoded = text.encode("utf-8", "replace")
    is_long = len(encoded) > CONTENT_BYTES
    if is_long:
        text = encoded[:CONTENT_BYTES].decode("utf-8", "ignore")
    if cut == "time":
        text += TIMED_OUT
    elif is_long or cut:
        text += LEFT_OUT
    return {"content": text, "truncated": is_long or bool(cut)}
