"""What the rows of all tables share: their base, what they refuse of a value, how they show one.

What a caller sends is checked at the edge. A row may still hold something else: it was written by
an earlier version, by another program, or it is damaged. Then what can be shown is shown, and a
text stands in the place of the rest.
"""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from remit.errors import InvalidDataError, TooLargeError
from remit.kernel.store.disk import shown_text
from remit_client.values import DEEPEST, HIGHEST, LOWEST

if TYPE_CHECKING:
    from remit.kernel.store.database import Database

MAX_VALUE_BYTES = 16 * 1024 * 1024
MAX_KEY_BYTES = 1024
PAGE_LIMIT = 100
PAGE_BYTES = 512 * 1024
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_MOST_SHOWN = 60
_BEGINNING = 80
_DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)
_PUT = """
INSERT INTO blob (name, data) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data
"""

T = TypeVar("T")


class Rows:
    """The rows of a table or a few: queries over a database that somebody else opens and closes.

    Made wherever they are needed: what they remember of the rows is in the database's `memory`.
    """

    def __init__(self, database: "Database") -> None:
        self.database = database


class BlobRows(Rows):
    """A few large things by name, such as the last good configuration."""

    async def blob_put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, in the place of what was there.

        Raises:
            TooLargeError: more than 16 MiB.
        """
        check_state_key(name)
        check_size(data, "$.data")
        await self.database.write(lambda connection: connection.execute(_PUT, (name, data)).close())

    async def blob_get(self, name: str) -> bytes | None:
        """What was put under `name`, or None."""
        check_state_key(name)
        query = "SELECT data FROM blob WHERE name = ?"
        row = await self.database.read(
            lambda connection: connection.execute(query, (name,)).fetchone()
        )
        return None if row is None else bytes(row[0])


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


def shown_value(data: bytes, *, most: int | None = None) -> Any:
    """The value of stored JSON; of what is damaged, or has over `most` bytes, its beginning."""
    if most is not None and len(data) > most:
        return _unreadable(data, f"more than {most:,} bytes are not shown here")
    try:
        found = msgspec.json.decode(data)
    except _DAMAGED as error:
        return _unreadable(data, f"it is not JSON: {error}")
    return found if _nests_little(data) and _is_small(found) else _plain(found, 0)


def shown_object(data: bytes) -> dict[str, Any]:
    """The same where an object is expected."""
    found = shown_value(data)
    return found if isinstance(found, dict) else _unreadable(data, "it is not a JSON object")


def _byte_length(text: str) -> int:
    """The length in UTF-8, or -1 when there is none."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return -1


def _unreadable(data: bytes, why: str) -> dict[str, Any]:
    begins = ascii(shown_text(data[:_BEGINNING]))[1:-1]
    return {"unreadable": why, "bytes": len(data), "begins": begins}


def _nests_little(data: bytes) -> bool:
    return data.count(b"[") + data.count(b"{") <= DEEPEST


def _is_small(value: Any) -> bool:
    """Tell whether all numbers have 64 bits."""
    try:
        msgspec.msgpack.encode(value)
    except (OverflowError, RecursionError):
        return False
    return True


def _plain(value: Any, depth: int) -> Any:
    """The same with texts for what some format cannot carry."""
    if isinstance(value, int) and not LOWEST <= value <= HIGHEST:
        return str(value)
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return f"… ({len(value)} inside)"
    if isinstance(value, dict):
        return {key: _plain(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, depth + 1) for part in value]
    return value
