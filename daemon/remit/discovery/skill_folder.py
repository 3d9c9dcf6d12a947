"""The files of a skill's folder that are handed out: plain, visible, bounded, never out of it.

A folder below that holds a capability of its own is not part of this one: others may see the two.
Nor are the files in which remit itself is told about a capability: they name who may see it.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from remit.config.extension_file import EXTENSION_FILE
from remit.config.inside import NotInsideError, find_inside
from remit.config.manifest_file import MANIFEST_FILE
from remit.config.skill_file import SKILL_FILE

MAX_DEPTH = 8
MAX_ENTRIES = 10_000
"""Names that are looked at in one skill."""
MAX_PATH = 200

_OURS = frozenset({MANIFEST_FILE, EXTENSION_FILE})
_MAKE_ONE = frozenset({MANIFEST_FILE, SKILL_FILE})
_DERIVED = frozenset({"__pycache__", "node_modules"})


class LeftOut(msgspec.Struct, frozen=True):
    """A file that is not handed out, and why."""

    path: str
    reason: str


class Paths(msgspec.Struct, frozen=True):
    """What a folder holds, by path from it on, with `/` between."""

    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


def paths_of(folder: Path, first: str) -> Paths:
    """The files of a skill in a fixed order, the one with its text before all others."""
    walk = _Walk(folder)
    plain = set(walk.files())
    linked = {path for path in walk.links if _leads_to(folder, path) in plain}
    found = sorted(plain | linked, key=lambda path: (path != first, path))
    return Paths(tuple(found), tuple(walk.left_out))


def _leads_to(folder: Path, path: str) -> str:
    """The path behind all links; empty when it leads out or nowhere."""
    try:
        root, found = find_inside(folder, path)
    except (NotInsideError, OSError):
        return ""
    return found.relative_to(root).as_posix()


class _Walk:
    """One walk. Links to folders are passed by: they can go in circles."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = 0
        self.links: list[str] = []
        self.left_out: list[LeftOut] = []

    def files(self) -> Iterator[str]:
        waiting = [PurePosixPath()]
        while waiting:
            at = waiting.pop()
            entries = self._look(at)
            names = {entry.name for entry in entries}
            if at.parts and names & _MAKE_ONE:
                continue
            for entry in sorted(entries, key=lambda one: one.name):
                if (path := self._path(at, entry.name)) is None:
                    continue
                if entry.is_symlink():
                    self.links.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path
                elif entry.is_dir(follow_symlinks=False) and self._may_enter(at / entry.name):
                    waiting.append(at / entry.name)

    def _look(self, at: PurePosixPath) -> list["os.DirEntry[str]"]:
        """The entries of a folder that can be seen; none unless all of them could be looked at.

        What was not looked at may be the file that makes it a capability of its own.
        """
        try:
            with os.scandir(self._folder / at) as entries:
                found = list(islice(entries, MAX_ENTRIES - self._entries + 1))
        except OSError:
            return []
        self._entries += len(found)
        if self._entries > MAX_ENTRIES:
            self._entries = MAX_ENTRIES
            self._leave_out(at, f"more than {MAX_ENTRIES:,} files: this folder is not read")
            return []
        return [one for one in found if not one.name.startswith(".") and one.name not in _DERIVED]

    def _path(self, at: PurePosixPath, name: str) -> str | None:
        if name in _OURS and (name == MANIFEST_FILE or not at.parts):
            return None
        path = (at / name).as_posix()
        if not path.isprintable() or "\\" in path:
            self._leave_out(at, "a name in it is not plain text")
            return None
        if len(path) > MAX_PATH:
            self._leave_out(at, f"a path in it has more than {MAX_PATH} characters")
            return None
        return path

    def _may_enter(self, path: PurePosixPath) -> bool:
        if len(path.parts) > MAX_DEPTH:
            self._leave_out(path, f"folders deeper than {MAX_DEPTH} levels are not read")
            return False
        return True

    def _leave_out(self, path: PurePosixPath, reason: str) -> None:
        one = LeftOut(path.as_posix(), reason)
        if one not in self.left_out[-1:]:
            self.left_out.append(one)
