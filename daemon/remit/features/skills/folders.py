"""The walk through a directory of capabilities: bounded, in a fixed order, never out of it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from remit.config.strict.kinds import Report
from remit.features.skills.extension_file import EXTENSION_FILE
from remit.features.skills.manifest_file import MANIFEST_FILE
from remit.features.skills.skill_file import SKILL_FILE
from remit.model.place import Place, Problem

MAX_DEPTH = 6
MAX_CAPABILITIES = 20_000
MAX_ENTRIES = 200_000
"""Names that are looked at in one directory."""

_OURS = (MANIFEST_FILE, SKILL_FILE, EXTENSION_FILE)
_MAKE_ONE = frozenset({MANIFEST_FILE, SKILL_FILE})
_MISSPELT = {name.casefold(): name for name in _OURS} | {
    name.casefold().replace(".yaml", ".yml"): name for name in (MANIFEST_FILE, EXTENSION_FILE)
}


class Folder(msgspec.Struct, frozen=True):
    """A folder with files of ours in it."""

    path: Path
    files: frozenset[str]

    def without(self, name: str) -> Self:
        """The same folder as if this file were not there."""
        return msgspec.structs.replace(self, files=self.files - {name})


class Walk:
    """One walk; what is refused on the way is reported and passed by."""

    def __init__(self, root: Path, report: Report) -> None:
        self._root = root
        self._real_root = root.resolve()
        self._report = report
        self._seen: set[tuple[int, int]] = set()
        self._entries = 0
        self._capabilities = 0

    def folders(self) -> Iterator[Folder]:
        """Every folder that holds a file of ours, by path; the root too if it does."""
        waiting = [(self._root, 0)]
        while waiting:
            path, depth = waiting.pop()
            if not self._is_new(path):
                continue
            files, inner = self._look(path)
            self._capabilities += bool(files)
            if self._is_full():
                return
            if files:
                yield Folder(path, frozenset(files))
            if inner and (depth == 0 or not files & _MAKE_ONE):
                waiting += self._below(path, inner, depth)

    def _is_new(self, path: Path) -> bool:
        """Tell whether a folder was not walked already: links inside may go in circles."""
        try:
            status = path.stat()
        except OSError:
            return False  # deleted meanwhile
        key = (status.st_dev, status.st_ino)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _is_full(self) -> bool:
        too_many = self._entries > MAX_ENTRIES or self._capabilities > MAX_CAPABILITIES
        if too_many:
            message = (
                f"more than {MAX_CAPABILITIES:,} capabilities or {MAX_ENTRIES:,} files; "
                "the rest is not read"
            )
            self._report.add(Place(shown(self._root)), "too_large", message, "split the folder")
        return too_many

    def _look(self, path: Path) -> tuple[set[str], list[str]]:
        """The files of ours in a folder, and the folders in it."""
        files: set[str] = set()
        inner: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    self._entries += 1
                    if self._entries > MAX_ENTRIES:
                        break
                    self._sort(entry, files, inner)
        except FileNotFoundError:
            return set(), []  # deleted meanwhile
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            self._report.add(Place(shown(path)), "unreadable", message)
        return files, inner

    def _sort(self, entry: "os.DirEntry[str]", files: set[str], inner: list[str]) -> None:
        if entry.name in _OURS:
            files.add(entry.name)
        elif entry.name.startswith("."):
            return
        elif _is_folder(entry):
            inner.append(entry.name)
        elif entry.name.casefold() in _MISSPELT:
            meant = _MISSPELT[entry.name.casefold()]
            place = Place(shown(Path(entry.path)))
            message = f"{shown(Path(entry.name))!r} is not read"
            hint = f"the name is {meant}"
            warning = Problem(place, "misspelt_file", message, hint, severity="warning")
            self._report.extend([warning])

    def _below(self, path: Path, names: list[str], depth: int) -> list[tuple[Path, int]]:
        """The folders to walk next, the last one first."""
        if depth >= MAX_DEPTH:
            message = f"folders deeper than {MAX_DEPTH} levels are not read"
            self._report.add(Place(shown(path)), "too_deep", message, "move them up")
            return []
        allowed = [path / name for name in sorted(names) if self._may_enter(path / name)]
        return [(inner, depth + 1) for inner in reversed(allowed)]

    def _may_enter(self, path: Path) -> bool:
        place = Place(shown(path))
        if place.file != str(path):
            message = "the name of this folder is not plain text"
            self._report.add(place, "invalid_name", message, "rename it")
            return False
        try:
            leads_out = not path.resolve().is_relative_to(self._real_root)
        except (OSError, RuntimeError) as error:
            self._report.add(place, "unreadable", f"cannot be followed: {error}")
            return False
        if leads_out:
            hint = "copy the folder, or name it in the setting capability_dirs"
            message = "a link that leads out of the directory"
            self._report.add(place, "leads_out", message, hint)
        return not leads_out


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def shown(path: Path) -> str:
    """A path as text that can be printed and sent, whatever bytes it is made of."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
