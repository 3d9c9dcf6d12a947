"""JSON that others wrote, read strictly, with comments, or string by string.

Decoders keep the last of two equal keys and forget places; of two values nobody knows which was
meant, and somebody who hides text counts on that. So `parse_json` is the one parser of JSON in
which a key that stands twice matters. `json_strings` goes on token by token, to know where each
string stands.
"""

import json
import re
from collections import Counter, deque
from pathlib import Path as FilePath
from typing import Any

import msgspec

from remit.errors import DefinitionError, InvalidDataError, Place, Problem

Path = tuple[str | int, ...]
MAX_DEPTH = 200
MAX_BYTES = 32 << 20
"""Of a file with comments."""

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u.{4}|\\.", re.DOTALL
)
_OPENING: dict[str, str | int] = {"{": "", "[": 0}
_CLOSING = frozenset("]}")
_COMMENTS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')


class StrictJsonError(ValueError):
    """A text that is no JSON, or JSON that two readers would understand differently."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        """Where it is, if that is known."""
        self.column = column


class DoubledKeyError(StrictJsonError):
    """An object in which a key stands twice."""

    def __init__(self, key: str, path: str) -> None:
        super().__init__("a key stands twice in one object")
        self.key = key
        self.path = path
        """Of the object, as in `$.servers[0]`."""


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text in which no key stands twice in an object.

    Raises:
        StrictJsonError: this is not JSON, nested too deeply, or not told in one way only.
    """
    doubled: dict[int, str] = {}
    objects: list[dict[str, Any]] = []  # alive, so that no id is used again

    def watch(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        "".join(found).encode()  # half a character is no name: nobody could be told of it
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            doubled[id(found)] = next(key for key, count in counts.items() if count > 1)
            objects.append(found)
        return found

    try:
        value = json.loads(text, object_pairs_hook=watch, parse_constant=_refused_constant)
    except json.JSONDecodeError as error:
        raise StrictJsonError(error.msg, line=error.lineno, column=error.colno) from error
    except RecursionError as error:
        raise StrictJsonError("it is nested too deeply") from error
    except StrictJsonError:
        raise
    except ValueError as error:
        raise StrictJsonError(str(error)) from error
    if doubled:
        raise _doubled_key(value, doubled)
    return value


def _refused_constant(text: str) -> object:
    raise StrictJsonError(f"{text} is not a number")


def _doubled_key(value: Any, doubled: dict[int, str]) -> DoubledKeyError:
    """The outermost object with such a key: an inner one may have been overwritten."""
    waiting: deque[tuple[str, Any]] = deque([("$", value)])
    while True:
        path, node = waiting.popleft()
        if id(node) in doubled:
            return DoubledKeyError(doubled[id(node)], path)
        if isinstance(node, dict):
            waiting += ((f"{path}.{key}", inner) for key, inner in node.items())
        elif isinstance(node, list):
            waiting += ((f"{path}[{at}]", inner) for at, inner in enumerate(node))


def refuse_duplicates(text: str | bytes, what: str) -> None:
    """Refuse JSON that was decoded before, if one of its objects has a key twice.

    Raises:
        InvalidDataError: it has; the path says in which object.
    """
    try:
        parse_json(text)
    except DoubledKeyError as error:
        raise InvalidDataError(
            f"{error.key!r} is given twice at {error.path} of {what[:60]}",
            hint="keep one of them",
            details={"path": f"{error.path}.{error.key}"},
        ) from error
    except StrictJsonError as error:
        raise InvalidDataError(f"{what[:60]} is not JSON: {error}") from error


def read_commented_json(path: FilePath) -> Any:
    """The value in a file as editors write their settings.

    Comments, and commas before a closing bracket, are blanked, so that every place in the text
    stays where it was.

    Raises:
        DefinitionError: it cannot be read, or is not even such JSON; with line and column.
    """
    text = _read_text(path)
    plain = _TRAILING.sub(lambda m: m[1] or " ", _COMMENTS.sub(_blanked, text))
    try:
        return parse_json(plain)
    except DoubledKeyError as error:
        line = text.count("\n", 0, max(0, text.rfind(f'"{error.key}"'))) + 1
        message = f"the key {error.key!r} stands twice in one object"
        raise _problem(Place(str(path), line), "duplicate_key", message) from error
    except StrictJsonError as error:
        if error.line:
            place = Place(str(path), error.line, error.column)
            raise _problem(place, "json_syntax", f"this is not JSON: {error}") from error
        message = "this is not JSON, or is nested too deeply"
        raise _problem(Place(str(path)), "json_syntax", message) from error


def _read_text(path: FilePath) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise _problem(Place(str(path)), "unreadable", message) from error
    if len(raw) > MAX_BYTES:
        message = f"the file has more than {MAX_BYTES:,} bytes"
        raise _problem(Place(str(path)), "too_large", message)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = Place(str(path), raw[: error.start].count(b"\n") + 1)
        raise _problem(place, "not_utf8", "this is not UTF-8 text") from error


def _blanked(found: re.Match[str]) -> str:
    part = found[0]
    return part if part.startswith('"') else re.sub(r"[^\n]", " ", part)


def _problem(place: Place, code: str, message: str) -> DefinitionError:
    return DefinitionError([Problem(place, code, message)])


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
