"""What was fetched, as text that a model can read: in one of three formats, or why there is none.

Bytes become text: what the bytes say themselves beats what was said of them. HTML becomes Markdown
or plain text in a process of its own, with an end to its patience. A thread would not do: the
converter keeps the interpreter to itself for as long as it works, a hostile page of 4.5 MB makes it
ask for more memory than there is, and then it ends its process.
"""

import codecs
import re
import subprocess
import sys
from encodings import normalize_encoding
from encodings.aliases import aliases
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread
from anyio.abc import Process

if TYPE_CHECKING:  # it brings httpx
    from remit.features.web.fetch import Cut, FetchResult

Wanted = Literal["markdown", "text"]

CONTENT_BYTES = 480_000
"""Of an answer; one in which every sign is escaped still fits into a message."""
TIMED_OUT = "[..more content timed out...]"
LEFT_OUT = "[..more content left out...]"
_SNIFFED = 1024
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]+")
_TEXTS = {
    "broken": "the connection broke, or the content was damaged, before its end",
}
_META = re.compile(
    rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})"
    rb"|^\s*<\?xml[^>]{0,256}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]{1,40})"
)
_META_BYTES = 4096
_NAME_LIMIT = 40
_SLICE = 65_536
_LAST_RESORT = "cp1252"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Python knows more codecs (zlib, idna, unicode_escape); only those that pages are written in count.
_KNOWN = """
    utf-8 utf-16-le utf-16-be cp866 cp874 cp932 cp949 cp1250 cp1251 cp1252 cp1253 cp1254
    cp1255 cp1256 cp1257 cp1258 koi8-r koi8-u mac-roman mac-cyrillic tis-620 shift_jis euc_jp
    iso2022_jp euc_kr gb18030 big5 big5hkscs iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6
    iso8859-7 iso8859-8 iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16
"""
# Pages that say the name on the left are written in what stands on the right.
_MEANT = {
    "ascii": "cp1252",
    "iso8859_1": "cp1252",
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "utf_16": "utf-16-le",
    "x_sjis": "shift_jis",
}
CONVERSION_SECONDS = 8.0
"""For the conversion of a page."""
_AT_ONCE = anyio.CapacityLimiter(2)
_PROGRAM = Path(__file__).with_name("converter.py")


async def readable(
    fetched: "FetchResult", wanted: Literal["markdown", "text", ""]
) -> dict[str, Any]:
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


def _fitted(text: str, cut: "Cut") -> dict[str, Any]:
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


def _label(name: str) -> str:
    return normalize_encoding(name).lower()


_CODECS = {_label(codec): codec for codec in _KNOWN.split()} | _MEANT
# A table of our own: `codecs.lookup` remembers every name that it was ever asked for.
_LABELS = {alias: _CODECS[codec] for alias, codec in aliases.items() if codec in _CODECS} | _CODECS


def decode_page(data: bytes, stated: str = "", *, is_cut: bool = False) -> str:
    """Text of a page. It never fails: what cannot be read becomes U+FFFD.

    Args:
        data: its bytes.
        stated: the charset of its header, if any.
        is_cut: whether more should have come, so that half a sign may stand at the end.
    """
    mark, name = next(((m, n) for m, n in _MARKS if data.startswith(m)), (b"", ""))
    codec = name or find_codec(stated) or find_codec(_declared(data)) or _guess(data, is_cut=is_cut)
    decoder = codecs.getincrementaldecoder(codec)("replace")
    # In slices: some codecs spend a call on every wrong byte, and others must get their turn.
    texts = [decoder.decode(data[at : at + _SLICE]) for at in range(len(mark), len(data), _SLICE)]
    return "".join(texts) if is_cut else "".join(texts) + decoder.decode(b"", final=True)


def find_codec(name: str) -> str:
    """The codec of a charset's name; empty when it is none that pages are written in."""
    name = name.strip().strip("\"'")
    return _LABELS.get(_label(name), "") if name.isascii() and len(name) <= _NAME_LIMIT else ""


def _declared(data: bytes) -> str:
    found = _META.search(data[:_META_BYTES].lower())
    if found is None:
        return ""
    name = (found[1] or found[2]).decode("ascii")
    # It was read as ASCII, so it cannot be that.
    return "utf-8" if find_codec(name).startswith("utf-16") else name


def _guess(data: bytes, *, is_cut: bool) -> str:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=not is_cut)
    except UnicodeDecodeError:
        return _LAST_RESORT
    return "utf-8"


class UnreadablePageError(Exception):
    """A page that could not be converted; the text says why."""


async def convert_page(html: str, wanted: Wanted, *, limit: int, base_url: str = "") -> str:
    """Convert a page.

    Args:
        html: the page.
        wanted: what to make of it.
        limit: bytes of the result at the most.
        base_url: what relative links start at.

    Raises:
        UnreadablePageError: it took too long or too much memory.
    """
    async with _AT_ONCE:
        process = await _start(wanted, limit, base_url)
        async with process:
            try:
                with anyio.fail_after(CONVERSION_SECONDS):
                    data = await _talk(process, html.encode("utf-8", "replace"), limit)
                    code = await process.wait()
            except TimeoutError as error:
                raise UnreadablePageError(f"it took more than {CONVERSION_SECONDS:g} s") from error
            finally:
                if process.returncode is None:
                    process.kill()
    if code:
        raise UnreadablePageError("it took more than there is room for")
    return data.decode("utf-8", "ignore")  # the last sign may be cut in half


async def _start(wanted: Wanted, limit: int, base_url: str) -> Process:
    try:
        # A start that is given up half-way would leave a process behind that nobody knows of.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [sys.executable, "-I", str(_PROGRAM), wanted, str(limit), base_url],
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},  # nothing of the daemon's
                start_new_session=True,  # a signal to the daemon's group is not for it
            )
    except OSError as error:
        raise UnreadablePageError("no process could be started for it") from error
    return process


async def _talk(process: Process, data: bytes, limit: int) -> bytes:
    """Hand a page in while taking out what becomes of it."""
    found = bytearray()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hand_in, process, data)
        if process.stdout is not None:
            async for chunk in process.stdout:
                found += chunk[: limit - len(found)]
    return bytes(found)


async def _hand_in(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    try:
        await process.stdin.send(data)
        await process.stdin.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        return  # it ended before it had read all; its exit code says so
