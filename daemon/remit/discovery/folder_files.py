"""The files of one folder of a capability directory, read into descriptors."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from remit.config.extension_file import EXTENSION_FILE, read_extension_file
from remit.config.files import Files
from remit.config.frontmatter import MAX_MARKDOWN
from remit.config.inside import NotInsideError, read_inside
from remit.config.kinds import Report
from remit.config.manifest_file import MANIFEST_FILE, read_manifest_file
from remit.config.nodes import MAX_BYTES
from remit.config.skill_file import SKILL_FILE, read_skill_file
from remit.discovery.capability_folders import Folder, shown
from remit.model.descriptor import Descriptor
from remit.model.place import Place, Problem

Read = Callable[[bytes, str, Path, Report], tuple[Descriptor, ...]]
Known = dict[str, tuple[bytes, tuple[Descriptor, ...], tuple[Problem, ...]]]
"""By file: the hash of what was read, and what came of it."""


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
