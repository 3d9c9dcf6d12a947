"""Paths of the session file system, and the hosts that may be asked.

A path names a row of a store and never a file of this machine. A host pattern is the name of a
host, or `*.` and a name for everything below it; a denial beats an allowance, and of several rules
each must agree.
"""

import re
from typing import NewType

import msgspec

from remit.errors import InvalidDataError

FilePath = NewType("FilePath", str)

ROOT = FilePath("/")
MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255
MAX_DEPTH = 32
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_PATTERN = rf"(\*\.)?{_LABEL}(\.{_LABEL})*|\[[0-9a-f:.]+\]"
_LONGEST = 255


def parse_file_path(text: str) -> FilePath:
    """Accept an absolute POSIX path that can be written in one way only.

    Raises:
        InvalidDataError: it is relative, leads up, or could be taken for another path.
    """
    if text == ROOT:
        return ROOT
    problem = _problem(text)
    if problem:
        raise InvalidDataError(
            f"{_shown(text)} is not a path: {problem}",
            hint="write an absolute path, as in '/docs/readme.txt'",
            details={"path": "$.path"},
        )
    return FilePath(text)


def parents(path: str) -> list[str]:
    """Every directory above a path but the root, the nearest first."""
    found = []
    above = path.rpartition("/")[0]
    while above:
        found.append(above)
        above = above.rpartition("/")[0]
    return found


def inside(directory: str) -> str:
    """What the paths of everything in a directory start with."""
    return directory if directory == ROOT else f"{directory}/"


def _problem(text: str) -> str:
    if not text.startswith("/"):
        return "it does not start with '/'"
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        return "it is not Unicode text"
    if len(text.encode()) > MAX_PATH_BYTES:
        return f"it has more than {MAX_PATH_BYTES:,} bytes"
    names = text[1:].split("/")
    if len(names) > MAX_DEPTH:
        return f"it has more than {MAX_DEPTH} parts"
    return next((problem for name in names if (problem := _name_problem(name))), "")


def _name_problem(name: str) -> str:
    if not name:
        return "it has '//' in it, or '/' at its end"
    if name in {".", ".."}:
        return f"{name!r} leads elsewhere"
    if not name.isprintable() or "\\" in name:
        return "it has a sign that cannot be seen, or a backslash"
    if name != name.strip() or name.endswith("."):
        return "a part of it ends in a dot, or begins or ends in a blank"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"a part of it has more than {MAX_NAME_BYTES} bytes"
    return "" if name.isascii() or _is_composed(name) else "its accents stand apart (write NFC)"


def _is_composed(name: str) -> bool:
    """Two spellings of one text would be two files that look the same."""
    import unicodedata  # noqa: PLC0415 - a megabyte of tables, and most paths are ASCII

    return unicodedata.is_normalized("NFC", name)


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004 - one screen line


class HostRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lists of host patterns as an operator wrote them; without `allow_hosts` any host will do."""

    allow_hosts: tuple[str, ...] | None = None
    deny_hosts: tuple[str, ...] = ()

    def wrong_pattern(self) -> str | None:
        """The first entry that is no host pattern, or None."""
        listed = (*(self.allow_hosts or ()), *self.deny_hosts)
        return next((one for one in listed if not is_host_pattern(one)), None)

    def allow(self, host: str) -> bool:
        """Tell whether a host may be asked; it is written in ASCII, an IPv6 address in brackets."""
        host = host.lower().removesuffix(".")
        if any(_covers(pattern, host) for pattern in self.deny_hosts):
            return False
        return self.allow_hosts is None or any(_covers(one, host) for one in self.allow_hosts)


def is_host_pattern(text: str) -> bool:
    """Tell whether this is how an operator writes hosts."""
    return len(text) <= _LONGEST and re.fullmatch(_PATTERN, text.lower()) is not None


def _covers(pattern: str, host: str) -> bool:
    pattern = pattern.lower()
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern
