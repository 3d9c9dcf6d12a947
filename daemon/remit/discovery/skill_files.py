"""What is handed out of a skill's folder: which files with which digests, and their bytes."""

import os
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import msgspec

from remit.config.core_schema import core_json
from remit.config.frontmatter import read_markdown
from remit.config.inside import NotInsideError, open_inside
from remit.config.skill_file import SKILL_FILE
from remit.discovery.content import Version, version_of
from remit.discovery.skill_folder import LeftOut, paths_of
from remit.model.descriptor import SourceRef

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


class SkillFile(msgspec.Struct, frozen=True):
    """A file as it was when it was read."""

    path: str
    size: int
    sha256: str


class SkillFiles(msgspec.Struct, frozen=True):
    """The files of a skill, the one with its text first."""

    files: tuple[SkillFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class SkillReader:
    """Reads folders of skills; may be asked from several threads."""

    def __init__(self) -> None:
        self._digests = _Kept[SkillFile](_DIGESTS)
        self._frontmatters = _Kept[dict[str, Any]](_FRONTMATTERS)

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
                left_out.append(LeftOut(path, found))
        return SkillFiles(tuple(files), tuple(left_out[:_LEFT_OUT]))

    def read(self, source: SourceRef, path: str) -> bytes | None:
        """The bytes of one file; None unless it is one of those that are handed out."""
        if all(path != one.path for one in self.files(source).files):
            return None
        try:
            with open_inside(Path(source.root), path) as stream:
                raw = stream.read(MAX_FILE + 1)
        except (NotInsideError, OSError):
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
        except (NotInsideError, OSError):
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
        except (NotInsideError, OSError):
            return ""


class _Kept(Generic[Value]):
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
