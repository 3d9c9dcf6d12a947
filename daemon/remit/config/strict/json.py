"""JSON that other programs wrote: every string in it, with where it stands.

Decoders forget places and keep only the last of two equal keys; somebody who hides text counts on
that. So the text is read token by token, after a strict decoder has found it to be JSON.
"""

import json
import re
from typing import Any

import msgspec

from remit.errors import InvalidDataError

Path = tuple[str | int, ...]
MAX_DEPTH = 200

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u.{4}|\\.", re.DOTALL
)

_OPENING: dict[str, str | int] = {"{": "", "[": 0}
_CLOSING = frozenset("]}")


class JsonString(msgspec.Struct, frozen=True):
    """A string: the value at a path, or the key of that path."""

    path: Path
    is_key: bool
    start: int
    """Where its first character stands in the text, behind the quote."""
    raw: str
    """As written, without the quotes."""

    @property
    def value(self) -> str:
        """What is meant."""
        return _meant(self.raw)


def json_strings(text: str) -> list[JsonString]:
    """Every string of a JSON text, in the order in which they stand there.

    Raises:
        ValueError: this is not JSON, or it is nested too deeply.
    """
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error) or "it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("it holds half a character") from error
    walk = _Walk()
    for match in _TOKEN.finditer(text):
        walk.take(match.group(), match.start())
    return walk.found


class _Walk:
    """Where the reading is: the path to the next value, and whether a key comes next."""

    def __init__(self) -> None:
        self.found: list[JsonString] = []
        self._path: list[str | int] = []
        self._wants_key = False

    def take(self, part: str, at: int) -> None:
        """Go one token on; the text is known to be JSON."""
        if part[0] == '"':
            self._take_string(part[1:-1], at + 1)
        elif part in _OPENING:
            self._enter(_OPENING[part])
        elif part in _CLOSING:
            self._path.pop()
            self._wants_key = False
        elif part == ",":
            last = self._path[-1]
            self._wants_key = isinstance(last, str)
            if isinstance(last, int):
                self._path[-1] = last + 1

    def _enter(self, first: str | int) -> None:
        if len(self._path) >= MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        self._path.append(first)
        self._wants_key = first == ""

    def _take_string(self, raw: str, at: int) -> None:
        is_key = self._wants_key
        if is_key:
            self._path[-1] = _meant(raw)
            self._wants_key = False
        self.found.append(JsonString(tuple(self._path), is_key, at, raw))


def _meant(raw: str) -> str:
    return str(json.loads(f'"{raw}"')) if "\\" in raw else raw


def raw_offset(raw: str, at: int) -> int:
    """Where in a written string the character stands that is the one at `at` of its value."""
    shift = 0
    for match in _ESCAPE.finditer(raw):
        if match.start() - shift >= at:
            break
        shift += len(match.group()) - 1
    return min(at + shift, len(raw))


# JSON in which every key stands once: of two values nobody knows which was meant.


def refuse_duplicates(text: str | bytes, what: str) -> None:
    """Refuse JSON that was decoded before, if one of its objects has a key twice.

    Raises:
        InvalidDataError: it has; the path says in which object.
    """
    import json  # noqa: PLC0415 - it tells of every pair, where msgspec keeps the last one

    doubled: dict[int, str] = {}

    def watch(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            doubled[id(made)] = next(key for key in keys if keys.count(key) > 1)
        kept.append(made)
        return made

    kept: list[dict[str, Any]] = []  # alive, so that no id is used again
    found = json.loads(text, object_pairs_hook=watch)
    if not doubled:
        return
    path, key = next(_walk(found, "$", doubled))
    raise InvalidDataError(
        f"{key!r} is given twice at {path} of {what[:60]}",
        hint="keep one of them",
        details={"path": f"{path}.{key}"},
    )


def _walk(node: Any, path: str, doubled: dict[int, str]) -> Any:
    """The objects with a doubled key, outermost first: an inner one may have been overwritten."""
    if id(node) in doubled:
        yield path, doubled[id(node)]
    items = node.items() if isinstance(node, dict) else ()
    for key, value in items:
        yield from _walk(value, f"{path}.{key}", doubled)
    for at, value in enumerate(node if isinstance(node, list) else ()):
        yield from _walk(value, f"{path}[{at}]", doubled)
