"""The folders of skills, manifests and extensions, read into descriptors.

A folder that holds CAPABILITY.yaml or SKILL.md is one capability, and what lies below it belongs to
it. Whatever is wrong with one file is told with its place, and the others are read all the same.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec

from remit.config.definitions.files import Files
from remit.config.settings.load import user_file
from remit.config.strict.files import NotInsideError, read_inside
from remit.config.strict.frontmatter import MAX_MARKDOWN
from remit.config.strict.kinds import Report
from remit.config.strict.yaml import MAX_BYTES
from remit.features.skills.extension_file import EXTENSION_FILE, read_extension_file
from remit.features.skills.folders import Folder, Walk, shown
from remit.features.skills.manifest_file import MANIFEST_FILE, read_manifest_file
from remit.features.skills.skill_file import SKILL_FILE, read_skill_file
from remit.model.descriptor import Descriptor
from remit.model.place import Place, Problem, by_place

Read = Callable[[bytes, str, Path, Report], tuple[Descriptor, ...]]
Known = dict[str, tuple[bytes, tuple[Descriptor, ...], tuple[Problem, ...]]]
"""By file: the hash of what was read, and what came of it."""

FOLDER = "capabilities"
WORKSPACE = ".remit"
MAX_DIRECTORIES = 64


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
        except NotInsideError as error:
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


def _manifest(raw: bytes, file: str, folder: Path, report: Report) -> tuple[Descriptor, ...]:
    found = read_manifest_file(raw, file, folder, report)
    return () if found is None else (found,)


def _skill(raw: bytes, file: str, folder: Path, report: Report) -> tuple[Descriptor, ...]:
    found = read_skill_file(raw, file, folder, report)
    return () if found is None else (found,)


def _extensions(raw: bytes, file: str, _folder: Path, report: Report) -> tuple[Descriptor, ...]:
    return read_extension_file(raw, file, report)


class Directory(msgspec.Struct, frozen=True):
    """A folder that is searched, and why."""

    path: Path
    source: Literal["user", "workspace", "configured"]


class Overridden(msgspec.Struct, frozen=True):
    """An id that stands in two directories; the later one counts."""

    id: str
    by: Place
    instead_of: Place

    def __str__(self) -> str:
        return f"{self.id}: {self.by} instead of {self.instead_of}"


class Scan(msgspec.Struct, frozen=True):
    """What the directories hold; no two descriptors have one id."""

    descriptors: tuple[Descriptor, ...] = ()
    problems: tuple[Problem, ...] = ()
    overridden: tuple[Overridden, ...] = ()
    workspace: frozenset[str] = frozenset()
    """Ids that the workspace says: anybody who wrote a repository may stand behind them."""
    problem_count: int = 0
    """All problems; the list ends at a bound."""


def directories(
    env: Mapping[str, str], cwd: Path, configured: Iterable[Path] = ()
) -> tuple[Directory, ...]:
    """Where capabilities are looked for, weakest first: user, workspace, then the setting's."""
    found = [
        Directory(user_file(env).parent / FOLDER, "user"),
        Directory(cwd.absolute() / WORKSPACE / FOLDER, "workspace"),
        *(Directory(cwd.absolute() / path, "configured") for path in configured),
    ]
    # One folder under two names is read once, where it counts most.
    last = {os.path.realpath(one.path): at for at, one in enumerate(found)}
    return tuple(found[at] for at in sorted(last.values())[-MAX_DIRECTORIES:])


class Scanner:
    """Reads directories, and parses again only what has changed since the last reading."""

    def __init__(self) -> None:
        self._known: Known = {}

    def scan(self, searched: Sequence[Directory]) -> Scan:
        """Read every directory; blocks, so call it in a worker thread, one call at a time."""
        report = Report()
        reader = FolderReader(self._known, report)
        found: dict[str, Descriptor] = {}
        overridden: list[Overridden] = []
        workspace: set[str] = set()
        for directory in searched:
            is_workspace = directory.source == "workspace"
            for descriptor in _scan_one(directory, reader, report).values():
                before = found.get(descriptor.id)
                if before is not None and place_of(before) != place_of(descriptor):
                    overridden.append(
                        Overridden(descriptor.id, place_of(descriptor), place_of(before))
                    )
                found[descriptor.id] = descriptor
                (workspace.add if is_workspace else workspace.discard)(descriptor.id)
        self._known = reader.read
        return Scan(
            tuple(found[name] for name in sorted(found)),
            tuple(sorted(report.problems, key=by_place)),
            tuple(sorted(overridden, key=lambda one: one.id)),
            frozenset(workspace),
            report.count,
        )


def scan(searched: Sequence[Directory]) -> Scan:
    """Read every directory once."""
    return Scanner().scan(searched)


def place_of(descriptor: Descriptor) -> Place:
    """Where a descriptor is written."""
    return descriptor.source.place or Place(descriptor.id)


def _scan_one(directory: Directory, reader: FolderReader, report: Report) -> dict[str, Descriptor]:
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
