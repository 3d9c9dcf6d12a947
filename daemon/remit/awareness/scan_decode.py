"""Payloads in code: base64, hexadecimal, percent signs, entities. Decoded once, never again."""

import base64
import binascii
import html
import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

MAX_CHUNKS = 64
MAX_CHUNK = 65_536
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(
    r"(?:0x)?(?:[0-9a-fA-F]{2}[ :,]?){12,}|(?:\\x[0-9a-fA-F]{2}){6,}|(?:\\u00[0-9a-fA-F]{2}){6,}"
)
_WORD = re.compile(r"\S+")
_LINE = re.compile(r"[^\n]+")
_NOT_HEX = re.compile(r"\\x|\\u00|0x|[^0-9a-fA-F]")
_READABLE = 0.9
_SHORTEST = 8


def decoded_chunks(text: str) -> Iterator[tuple[str, int]]:
    """What stands in code in the text, readable, and where; at most `MAX_CHUNKS` of each."""
    for pattern, mark, decode in (
        (_BASE64, "", _from_base64),
        (_HEX, "", _from_hex),
        (_WORD, "%", unquote),
        (_LINE, "&", html.unescape),
    ):
        marked = (match for match in pattern.finditer(text) if mark in match.group())
        for match in islice(marked if mark in text else (), MAX_CHUNKS):
            chunk = match.group()[:MAX_CHUNK]
            found = decode(chunk)
            if found != chunk and is_readable(found):
                yield found, match.start()


def is_readable(text: str) -> bool:
    """Tell whether a person could read this."""
    if len(text) < _SHORTEST:
        return False
    good = sum(char.isalnum() or char in " \n.,:;!?'\"-_/@<>()[]{}|" for char in text)
    return good >= _READABLE * len(text)


def _from_base64(chunk: str) -> str:
    plain = chunk.rstrip("=").translate(str.maketrans("-_", "+/"))
    plain = plain[: len(plain) - 1] if len(plain) % 4 == 1 else plain
    try:
        return _text(base64.b64decode(plain + "=" * (-len(plain) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _from_hex(chunk: str) -> str:
    digits = _NOT_HEX.sub("", chunk)
    return _text(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
