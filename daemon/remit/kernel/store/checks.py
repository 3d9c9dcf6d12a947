"""What every table refuses of a value, and how a long list is cut into pages."""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from remit.errors import InvalidDataError, TooLargeError

MAX_VALUE_BYTES = 16 * 1024 * 1024
MAX_KEY_BYTES = 1024
PAGE_LIMIT = 100
PAGE_BYTES = 512 * 1024
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_MOST_SHOWN = 60

T = TypeVar("T")


def check_state_key(key: str) -> None:
    """Refuse a key that no store can keep."""
    if "\0" in key or not 0 < _byte_length(key) <= MAX_KEY_BYTES:
        raise InvalidDataError(
            f"{brief_text(key)} cannot be a state key",
            hint=f"write 1 to {MAX_KEY_BYTES} bytes of text without NUL, as in 'team/a/plan'",
            details={"path": "$.key"},
        )


def after_prefix(prefix: str) -> str | None:
    """The first text, in code point order, behind all texts that start with `prefix`."""
    stem = prefix.rstrip(chr(_LAST_CHARACTER))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    # Surrogates are no characters: a database could not even be asked about them.
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return stem[:-1] + chr(following)


def check_text(text: str, path: str) -> None:
    """Refuse text that is not Unicode (a lone surrogate), before a database chokes on it."""
    if _byte_length(text) < 0:
        raise InvalidDataError(
            f"{brief_text(text)} is not Unicode text",
            hint="a lone surrogate has no UTF-8",
            details={"path": path},
        )


def check_time(seconds: float, path: str) -> None:
    """Refuse what is no moment: no database can compare NaN."""
    if not math.isfinite(seconds):
        raise InvalidDataError(
            f"{seconds} is not a time",
            hint="send seconds since the epoch",
            details={"path": path},
        )


def check_json(data: bytes, path: str) -> None:
    """Refuse what is not JSON, or too large."""
    check_size(data, path)
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidDataError(
            f"this is not JSON: {error}", hint="send JSON text", details={"path": path}
        ) from error


def check_size(data: bytes, path: str) -> None:
    """Refuse what is larger than any store takes."""
    if len(data) > MAX_VALUE_BYTES:
        raise TooLargeError(
            f"this has {len(data):,} bytes, the store takes {MAX_VALUE_BYTES:,}",
            hint="keep large things in a file and store its path",
            details={"path": path, "limit": MAX_VALUE_BYTES, "size": len(data)},
        )


def check_limit(limit: int) -> None:
    """Refuse a page without entries, or with more than anybody can count."""
    if not 0 < limit < 2**31:
        raise InvalidDataError(
            f"a page of {limit} entries cannot be made",
            hint="ask for at least one",
            details={"path": "$.limit"},
        )


def cut(
    rows: Iterable[T], limit: int, max_bytes: int, size: Callable[[T], int]
) -> tuple[list[T], bool]:
    """The first `limit` of `rows`, and whether there are more.

    They are fewer when they would outgrow `max_bytes`, but at least one if there is one.
    """
    taken: list[T] = []
    left = max_bytes
    for row in rows:
        left -= size(row)
        if taken and (len(taken) == limit or left < 0):
            return taken, True
        taken.append(row)
    return taken, False


def brief_text(text: str) -> str:
    """Text as an error shows it: one line, and no sign that a terminal obeys."""
    return ascii(text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "...")


def _byte_length(text: str) -> int:
    """The length in UTF-8, or -1 when there is none."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return -1
