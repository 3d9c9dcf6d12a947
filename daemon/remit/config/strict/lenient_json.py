"""JSON as editors write their settings: with comments, and commas before a closing bracket.

What is not JSON is blanked, so that every place in the text stays where it was. Keys that stand
twice are refused: of two servers of one name nobody knows which one was meant.
"""

import re
from pathlib import Path
from typing import Any

from remit.model.place import DefinitionError, Place, Problem

MAX_BYTES = 32 << 20
_PARTS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')


class _Twice(ValueError):  # noqa: N818 - told as a problem, never seen outside
    pass


def read_lenient_json(path: Path) -> Any:
    """The value in a file.

    Raises:
        DefinitionError: it cannot be read, or is not even lenient JSON; with line and column.
    """
    import json  # noqa: PLC0415 - msgspec neither tells where nor what stands twice

    text = _read(path)
    plain = _TRAILING.sub(lambda m: m[1] or " ", _PARTS.sub(_blanked, text))
    try:
        return json.loads(plain, object_pairs_hook=_unique, parse_constant=_refused)
    except json.JSONDecodeError as error:
        place = Place(str(path), error.lineno, error.colno)
        raise _problem(place, "json_syntax", f"this is not JSON: {error.msg}") from error
    except _Twice as error:
        line = text.count("\n", 0, max(0, text.rfind(f'"{error}"'))) + 1
        message = f"the key {str(error)!r} stands twice in one object"
        raise _problem(Place(str(path), line), "duplicate_key", message) from error
    except (ValueError, RecursionError) as error:
        message = "this is not JSON, or is nested too deeply"
        raise _problem(Place(str(path)), "json_syntax", message) from error


def _read(path: Path) -> str:
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


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    "".join(found).encode()  # half a character is no name: nobody could be told of it
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _refused(name: str) -> Any:
    raise ValueError(name)


def _problem(place: Place, code: str, message: str) -> DefinitionError:
    return DefinitionError([Problem(place, code, message)])
