"""What is handed out of a skill's folder: which files with which digests, and their bytes.

The files are plain, visible and bounded, and none lies out of the folder. A folder below that holds
a capability of its own is not part of this one: others may see the two. Nor are the files in which
remit itself is told about a capability: they name who may see it. Every path is checked again at
every reading: between the scan and now a link may have been put there.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from remit.config.strict.files import EscapesFolderError, find_inside, open_inside
from remit.config.strict.frontmatter import (
    MAX_MARKDOWN,
    core_json,
    read_markdown,
    split_frontmatter,
)
from remit.config.strict.yaml import read_text
from remit.errors import DefinitionError, Place, Problem
from remit.features.skills.extension_file import EXTENSION_FILE
from remit.features.skills.manifest_file import MANIFEST_FILE
from remit.features.skills.skill_file import SKILL_FILE
from remit.model.descriptor import SourceRef

_KEPT = 64
"""Texts that are kept decoded; the one that was asked for longest ago goes first."""

Version = tuple[str, int, int, int, int, int]
"""A path, and what its file was when it was opened."""

MAX_DEPTH = 8
MAX_ENTRIES = 10_000
"""Names that are looked at in one skill."""
MAX_PATH = 200
_OURS = frozenset({MANIFEST_FILE, EXTENSION_FILE})
_MAKE_ONE = frozenset({MANIFEST_FILE, SKILL_FILE})
_DERIVED = frozenset({"__pycache__", "node_modules"})
MAX_FILES = 512
MAX_TOTAL = 16 * 1024 * 1024
"""Bytes of all files. This and the number of files are what every host of skills takes."""
MAX_FILE = 384 * 1024
"""Bytes of one file: as base64, or as text full of quotes in JSON, it fits into one message."""
_LEFT_OUT = 20
"""How many of the files that are left out are told."""
_DIGESTS = 16_384
_FRONTMATTERS = 1_024
Value = TypeVar("Value")


class ContentReader:
    """Reads texts; may be asked from several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Version, str] = OrderedDict()
        self._lock = Lock()

    def read(self, source: SourceRef) -> str:
        """The text without its frontmatter; empty when the source has none.

        Raises:
            DefinitionError: the file is gone, lies elsewhere, is too large or is not text.
        """
        if not source.content_file:
            return ""
        file = str(Path(source.root, source.content_file))
        try:
            with open_inside(Path(source.root), source.content_file) as stream:
                key = (file, *version_of(os.fstat(stream.fileno())))
                known = self._known(key)
                return self._remember(key, _body(stream, file)) if known is None else known
        except FileNotFoundError:
            problem = Problem(Place(file), "unreadable", "the file is gone")
            raise DefinitionError([problem]) from None
        except (EscapesFolderError, OSError) as error:
            raise DefinitionError([Problem(Place(file), "unreadable", str(error))]) from error

    def _known(self, key: Version) -> str | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _remember(self, key: Version, text: str) -> str:
        with self._lock:
            self._kept[key] = text
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return text


def version_of(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """What changes when a file does; the time of writing alone can be set to anything."""
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, status.st_size, *times)


def _body(stream: BinaryIO, file: str) -> str:
    raw = stream.read(MAX_MARKDOWN + 1)
    if len(raw) > MAX_MARKDOWN:
        message = f"the file has more than {MAX_MARKDOWN:,} bytes"
        raise DefinitionError([Problem(Place(file), "too_large", message)])
    text, problems = read_text(raw, file)
    if problems:
        raise DefinitionError(problems)
    return split_frontmatter(text)[1].strip()


class OmittedFile(msgspec.Struct, frozen=True):
    """A file that is not handed out, and why."""

    path: str
    reason: str


class Paths(msgspec.Struct, frozen=True):
    """The files of a folder by relative POSIX path, and those that are left out."""

    files: tuple[str, ...]
    left_out: tuple[OmittedFile, ...] = ()


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
    except (EscapesFolderError, OSError):
        return ""
    return found.relative_to(root).as_posix()


class _Walk:
    """One walk. Links to folders are passed by: they can go in circles."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = 0
        self.links: list[str] = []
        self.left_out: list[OmittedFile] = []

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
        one = OmittedFile(path.as_posix(), reason)
        if one not in self.left_out[-1:]:
            self.left_out.append(one)


class SkillFile(msgspec.Struct, frozen=True):
    """A file as it was when it was read."""

    path: str
    size: int
    sha256: str


class SkillFiles(msgspec.Struct, frozen=True):
    """The files of a skill, the one with its text first."""

    files: tuple[SkillFile, ...] = ()
    left_out: tuple[OmittedFile, ...] = ()


class SkillReader:
    """Reads folders of skills; may be asked from several threads."""

    def __init__(self) -> None:
        self._digests = _Cache[SkillFile](_DIGESTS)
        self._frontmatters = _Cache[dict[str, Any]](_FRONTMATTERS)

    def files(self, source: SourceRef) -> SkillFiles:
        """All files that are handed out; one that has not changed is not read again."""
        if not source.root:  # no folder is not the folder that the daemon was started in
            return SkillFiles()
        folder = Path(source.root)
        paths = paths_of(folder, source.content_file or SKILL_FILE)
        files: list[SkillFile] = []
        left_out = list(paths.left_out)
        for path in paths.files:
            found = self._file(folder, path, files)
            if isinstance(found, SkillFile):
                files.append(found)
            elif found:
                left_out.append(OmittedFile(path, found))
        return SkillFiles(tuple(files), tuple(left_out[:_LEFT_OUT]))

    def read(self, source: SourceRef, path: str) -> bytes | None:
        """The bytes of one file; None unless it is one of those that are handed out."""
        if all(path != one.path for one in self.files(source).files):
            return None
        try:
            with open_inside(Path(source.root), path) as stream:
                raw = stream.read(MAX_FILE + 1)
        except (EscapesFolderError, OSError):
            return None
        return raw if len(raw) <= MAX_FILE else None

    def frontmatter(self, source: SourceRef) -> dict[str, Any]:
        """The keys above the text as other readers of YAML have them; empty when there are none."""
        if not source.root:
            return {}
        try:
            with open_inside(Path(source.root), SKILL_FILE) as stream:
                version = version_of(os.fstat(stream.fileno()))
                key = (f"{source.root}/{SKILL_FILE}", *version)
                return self._frontmatters.get(key, lambda: _keys(stream.read(MAX_FILE + 1)))
        except (EscapesFolderError, OSError):
            return {}

    def _file(self, folder: Path, path: str, before: list[SkillFile]) -> SkillFile | str:
        """A file with its digest, or why it is left out: empty when it is simply gone."""
        if len(before) == MAX_FILES:
            return f"a skill has at most {MAX_FILES} files"
        try:
            with open_inside(folder, path) as stream:
                status = os.fstat(stream.fileno())
                if reason := _too_much(status.st_size, before):
                    return reason
                key = (f"{folder}/{path}", *version_of(status))
                return self._digests.get(key, lambda: _digest(path, stream.read(MAX_FILE + 1)))
        except (EscapesFolderError, OSError):
            return ""


class _Cache(Generic[Value]):
    """What was made of files; the one that was asked for longest ago goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Version, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Version, make: Callable[[], Value]) -> Value:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def _too_much(size: int, before: list[SkillFile]) -> str:
    if size > MAX_FILE:
        return f"more than {MAX_FILE:,} bytes"
    if size + sum(one.size for one in before) > MAX_TOTAL:
        return f"all files together have more than {MAX_TOTAL:,} bytes"
    return ""


def _digest(path: str, raw: bytes) -> SkillFile:
    return SkillFile(path, len(raw), sha256(raw).hexdigest())


def _keys(raw: bytes) -> dict[str, Any]:
    markdown, problems = read_markdown(raw, SKILL_FILE, required=False)
    found = core_json(markdown.keys) if markdown.keys is not None and not problems else {}
    return found if isinstance(found, dict) else {}
