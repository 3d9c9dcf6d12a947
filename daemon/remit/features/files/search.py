"""Searching text files line by line, in time that grows with their length and no faster."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from remit.errors import InvalidDataError

MAX_MATCHES = 500
"""Of one answer."""
MAX_COUNT = 100_000
"""Matches that are counted before a search ends."""
MAX_SECONDS = 5.0
_MAX_LINE = 300
_MAX_BYTES = 262_144
"""Of all matches of one answer: a message may have 1 MiB."""
_MAX_MEMORY = 1 << 16
"""Of one pattern in bytes. It bounds how many letters times states a search may look at."""
_PIECE = 65_536
"""Bytes that are searched before the clock is looked at."""


class Match(msgspec.Struct, frozen=True):
    """A line with something in it that the pattern matches."""

    path: str
    line_number: int
    line: str


class Search:
    """One search; feed it files until it has had enough."""

    def __init__(
        self, pattern: str, path_pattern: str, *, limit: int, clock: Callable[[], float]
    ) -> None:
        self._search = compile_pattern(pattern, "$.pattern", lines=True).search
        wanted = compile_pattern(_glob(path_pattern), "$.path_pattern").fullmatch
        self._is_wanted: Callable[[str], Any] = wanted if path_pattern else lambda _path: True
        self._limit = limit
        self._clock = clock
        self._until = clock() + MAX_SECONDS
        self._room = _MAX_BYTES
        self.matches: list[Match] = []
        self.count = 0
        self.files = 0
        self.ended_early = False

    def feed(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Search some files; those with a NUL in them are no text, and left out."""
        for path, content in files:
            if self._has_enough():
                return
            if self._is_wanted(path) and b"\0" not in content:
                self.files += 1
                self._feed(path, content)

    def _has_enough(self) -> bool:
        self.ended_early |= self.count >= MAX_COUNT or self._clock() > self._until
        return self.ended_early

    @property
    def truncated(self) -> bool:
        """Tell whether there is, or may be, more than the answer holds."""
        return self.ended_early or self.count > len(self.matches)

    def _feed(self, path: str, content: bytes) -> None:
        number, counted = 1, 0
        for first, last in _pieces(content):
            position = first
            while position <= last and (found := self._search(content, position, last)) is not None:
                start = content.rfind(b"\n", 0, found.start()) + 1
                end = content.find(b"\n", found.start())
                end = len(content) if end < 0 else end
                number += content.count(b"\n", counted, start)
                counted, position = start, end + 1
                self.count += 1
                self._note(path, number, content[start : min(end, start + 4 * _MAX_LINE)])
            if self._has_enough():
                return

    def _note(self, path: str, number: int, line: bytes) -> None:
        if len(self.matches) >= self._limit or self._room <= 0:
            return
        text = line.decode(errors="replace").rstrip("\r")[:_MAX_LINE]
        self._room -= len(path.encode()) + len(text.encode()) + 64
        self.matches.append(Match(path, number, text))


def _pieces(content: bytes) -> Iterator[tuple[int, int]]:
    """Where pieces of whole lines begin and end, without the last line break of each."""
    first, size = 0, len(content)
    while first < size:
        last = content.find(b"\n", first + _PIECE)
        last = size - content.endswith(b"\n") if last < 0 else last
        yield first, last
        first = last + 1


def compile_pattern(pattern: str, field: str, *, lines: bool = False) -> Any:
    """A pattern that never takes more than linear time.

    Raises:
        InvalidDataError: it is none, or has what only slow engines know.
    """
    import re2  # noqa: PLC0415 - a library of C++, and few commands search

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    options.never_nl = lines
    try:
        re2.compile(pattern, options)  # by itself first: what is put around must not mend it
        return re2.compile(f"(?m:{pattern})" if lines else pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        text = error.args[0] if error.args else error
        reason = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise InvalidDataError(
            f"the pattern cannot be used: {reason}",
            hint="write it in RE2 syntax, without look-around and back references",
            details={"path": field},
        ) from error


def _glob(pattern: str) -> str:
    """`*` and `?` stay inside a directory, `**` does not; without a '/' it is about names."""
    import re2  # noqa: PLC0415 - see above

    if not pattern.startswith("/"):
        pattern = f"**/{pattern}"
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        for token, meaning in _GLOB:
            if pattern.startswith(token, position):
                parts.append(meaning)
                position += len(token)
                break
        else:
            parts.append(re2.escape(pattern[position]))
            position += 1
    return "".join(parts)


_GLOB = (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))
