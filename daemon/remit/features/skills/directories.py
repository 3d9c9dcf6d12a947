"""The directories of skills, manifests and extensions: walked, and read into descriptors.

The walk is bounded, in a fixed order, and never leads out of its directory. A folder that holds
CAPABILITY.yaml or SKILL.md is one capability, and what lies below it belongs to it. Whatever is
wrong with one file is told with its place, and the others are read all the same.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Literal, Self

import msgspec

from remit.config.definitions.files import Files
from remit.config.settings.load import user_file
from remit.config.strict.files import EscapesFolderError, read_inside
from remit.config.strict.frontmatter import MAX_MARKDOWN
from remit.config.strict.kinds import Report
from remit.config.strict.yaml import MAX_BYTES
from remit.errors import Place, Problem, by_place
from remit.features.skills.extension_file import EXTENSION_FILE, read_extension_file
from remit.features.skills.manifest_file import MANIFEST_FILE, read_manifest_file
from remit.features.skills.skill_file import SKILL_FILE, read_skill_file
from remit.model.descriptor import Descriptor

MAX_DEPTH = 6
MAX_CAPABILITIES = 20_000
MAX_ENTRIES = 200_000
"""Names that are looked at in one directory."""

_OURS = (MANIFEST_FILE, SKILL_FILE, EXTENSION_FILE)
_MAKE_ONE = frozenset({MANIFEST_FILE, SKILL_FILE})
_MISSPELT = {name.casefold(): name for name in _OURS} | {
    name.casefold().replace(".yaml", ".yml"): name for name in (MANIFEST_FILE, EXTENSION_FILE)
}
Read = Callable[[bytes, str, Path, Report], tuple[Descriptor, ...]]
Known = dict[str, tuple[bytes, tuple[Descriptor, ...], tuple[Problem, ...]]]
"""By file: the hash of what was read, and what came of it."""

FOLDER = "capabilities"
WORKSPACE = ".remit"
MAX_DIRECTORIES = 64


class CapabilityDirectory(msgspec.Struct, frozen=True):
    """A folder that is searched, and why."""

    path: Path
    source: Literal["user", "workspace", "configured"]


class Override(msgspec.Struct, frozen=True):
    """An id that stands in two directories; the later one counts."""

    id: str
    by: Place
    instead_of: Place

    def __str__(self) -> str:
        return f"{self.id}: {self.by} instead of {self.instead_of}"


class DirectoryScan(msgspec.Struct, frozen=True):
    """The descriptors that were found in directories, each id once, and the problems."""

    descriptors: tuple[Descriptor, ...] = ()
    problems: tuple[Problem, ...] = ()
    overridden: tuple[Override, ...] = ()
    workspace: frozenset[str] = frozenset()
    """Ids that the workspace says: anybody who wrote a repository may stand behind them."""
    problem_count: int = 0
    """All problems; the list ends at a bound."""


def directories(
    env: Mapping[str, str], cwd: Path, configured: Iterable[Path] = ()
) -> tuple[CapabilityDirectory, ...]:
    """Where capabilities are looked for, weakest first: user, workspace, then the setting's."""
    found = [
        CapabilityDirectory(user_file(env).parent / FOLDER, "user"),
        CapabilityDirectory(cwd.absolute() / WORKSPACE / FOLDER, "workspace"),
        *(CapabilityDirectory(cwd.absolute() / path, "configured") for path in configured),
    ]
    # One folder under two names is read once, where it counts most.
    last = {os.path.realpath(one.path): at for at, one in enumerate(found)}
    return tuple(found[at] for at in sorted(last.values())[-MAX_DIRECTORIES:])


class DirectoryScanner:
    """Reads directories, and parses again only what has changed since the last reading."""

    def __init__(self) -> None:
        self._known: Known = {}

    def scan(self, searched: Sequence[CapabilityDirectory]) -> DirectoryScan:
        """Read every directory; blocks, so call it in a worker thread, one call at a time."""
        report = Report()
        reader = FolderReader(self._known, report)
        found: dict[str, Descriptor] = {}
        overridden: list[Override] = []
        workspace: set[str] = set()
        for directory in searched:
            is_workspace = directory.source == "workspace"
            for descriptor in _scan_one(directory, reader, report).values():
                before = found.get(descriptor.id)
                if before is not None and place_of(before) != place_of(descriptor):
                    overridden.append(
                        Override(descriptor.id, place_of(descriptor), place_of(before))
                    )
                found[descriptor.id] = descriptor
                (workspace.add if is_workspace else workspace.discard)(descriptor.id)
        self._known = reader.read
        return DirectoryScan(
            tuple(found[name] for name in sorted(found)),
            tuple(sorted(report.problems, key=by_place)),
            tuple(sorted(overridden, key=lambda one: one.id)),
            frozenset(workspace),
            report.count,
        )


def place_of(descriptor: Descriptor) -> Place:
    """Where a descriptor is written."""
    return descriptor.source.place or Place(descriptor.id)


class Folder(msgspec.Struct, frozen=True):
    """A folder with files of ours in it."""

    path: Path
    files: frozenset[str]

    def without(self, name: str) -> Self:
        """The same folder as if this file were not there."""
        return msgspec.structs.replace(self, files=self.files - {name})


class FolderReader:
    """Reads folders; a file whose bytes are known already is not parsed again.

    A manifest always is: what comes of it depends on the files beside it too.
    """

    def __init__(self, known: Known, report: Report) -> None:
        self._known = known
        self._report = report
        self.read: Known = {}
        """What a next reader can know."""

    def descriptors(self, folder: Folder) -> tuple[Descriptor, ...]:
        """What a folder holds; a manifest takes the SKILL.md beside it as its text."""
        found: tuple[Descriptor, ...] = ()
        if MANIFEST_FILE in folder.files:
            found += self._read(folder.path, MANIFEST_FILE, MAX_BYTES, _manifest)
        elif SKILL_FILE in folder.files:
            found += self._read(folder.path, SKILL_FILE, MAX_MARKDOWN, _skill)
        if EXTENSION_FILE in folder.files:
            found += self._read(folder.path, EXTENSION_FILE, MAX_BYTES, _extensions)
        return found

    def _read(self, folder: Path, name: str, limit: int, read: Read) -> tuple[Descriptor, ...]:
        path = folder / name
        file = shown(path)
        try:
            raw = read_inside(folder, name, limit)
        except FileNotFoundError:
            if path.is_symlink():  # else it was deleted meanwhile
                message = "a link that leads nowhere"
                self._report.add(Place(file), "unreadable", message, "remove it")
            return ()
        except EscapesFolderError as error:
            self._report.add(Place(file), "unreadable", str(error), "put a plain file there")
            return ()
        found, problems = self._parsed(raw, path, read)
        self._report.extend(problems)
        return found

    def _parsed(
        self, raw: bytes, path: Path, read: Read
    ) -> tuple[tuple[Descriptor, ...], tuple[Problem, ...]]:
        digest = blake2b(raw, digest_size=16).digest()
        file = shown(path)
        known = self._known.get(file)
        if known is None or known[0] != digest or read is _manifest:
            own = Report()
            found = read(raw, file, path.parent, own)
            known = (digest, found, Files("", contents={file: raw}).illustrate(own.problems))
        self.read[file] = known
        return known[1], known[2]


def _scan_one(
    directory: CapabilityDirectory, reader: FolderReader, report: Report
) -> dict[str, Descriptor]:
    root = directory.path
    if not os.path.isdir(root):  # noqa: PTH112 - no exception when nobody may look
        if directory.source == "configured":
            message = "there is no such folder of capabilities"
            hint = "make it, or take it out of the setting capability_dirs"
            problem = Problem(Place(shown(root)), "not_found", message, hint, severity="warning")
            report.extend([problem])
        return {}
    found: dict[str, Descriptor] = {}
    for folder in Walk(root, report).folders():
        wanted = folder if folder.path == root else folder.without(EXTENSION_FILE)
        for descriptor in reader.descriptors(wanted):
            first = found.setdefault(descriptor.id, descriptor)
            if first is not descriptor:
                message = f"the id {descriptor.id!r} stands already at {place_of(first)}"
                hint = "give one of the two another name; this one is left out"
                report.add(place_of(descriptor), "duplicate_id", message, hint)
    return found


def _manifest(raw: bytes, file: str, folder: Path, report: Report) -> tuple[Descriptor, ...]:
    found = read_manifest_file(raw, file, folder, report)
    return () if found is None else (found,)


def _skill(raw: bytes, file: str, folder: Path, report: Report) -> tuple[Descriptor, ...]:
    found = read_skill_file(raw, file, folder, report)
    return () if found is None else (found,)


def _extensions(raw: bytes, file: str, _folder: Path, report: Report) -> tuple[Descriptor, ...]:
    return read_extension_file(raw, file, report)


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
