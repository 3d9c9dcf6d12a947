"""`remit scan`: files that are put before a model, scanned on this machine.

Skills, cards, documents, lists of tools and files of MCP hosts; `scan_installation` adds what this
installation shows by itself.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from remit.config.strict.frontmatter import split_frontmatter
from remit.config.strict.json import JsonString, json_strings
from remit.errors import DefinitionError, Place, Problem
from remit.features.scan.alarms import LEVELS, OWN_RULES, Alarm, by_place, show
from remit.features.scan.judge import judge_names, judge_server, judge_texts
from remit.features.scan.subjects import (
    Kind,
    SourceFile,
    Subject,
    SubjectText,
    servers_in,
    tools_in,
)
from remit.features.skills.extension_file import EXTENSION_FILE
from remit.features.skills.manifest_file import MANIFEST_FILE
from remit.features.skills.skill_file import SKILL_FILE

MAX_FILE = 64 << 20
"""Bytes; of documents the scanner reads a million characters and says so."""
MAX_ENTRIES = 100_000
"""Names that are looked at in one folder."""
_PASSED_BY = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__"})
_DOCUMENTS = (".md", ".mdc", ".markdown", ".txt")
_OURS = frozenset({SKILL_FILE.casefold(), MANIFEST_FILE.casefold(), EXTENSION_FILE.casefold()})
_NAMED = re.compile(r"^(name|id|kind)[ \t]*:[ \t]*[\"']?([^\"'\n#]{1,128}?)[\"']?[ \t]*$", re.M)
_TRIGGERS = re.compile(r"^triggers[ \t]*:", re.M)
_WORTH_READING = re.compile(r'"(?:tools|mcpServers|servers|input_?[sS]chema)"\s*:')
"""What tells, of the JSON files in a folder, those that are scanned."""
_LEVELS = 4
"""How far up the folder of a skill is looked for."""


class ScanResult(msgspec.Struct, frozen=True):
    """The result of a scan: the subjects, and the alarms in order of place."""

    alarms: tuple[Alarm, ...]
    subjects: dict[str, int]
    """How many of each kind were looked at."""

    def counts(self) -> dict[str, int]:
        """How many alarms there are of each severity, the worst first."""
        return {level: sum(one.severity == level for one in self.alarms) for level in LEVELS}


def scan_paths(paths: Sequence[Path]) -> ScanResult:
    """Scan these files and folders, and nothing else.

    Raises:
        DefinitionError: one of them is not there, or is a file that cannot be scanned.
    """
    subjects: list[Subject] = []
    files: list[tuple[Path, Kind | None]] = []
    for path in paths:
        if path.is_dir():
            files += ((inner, None) for inner in walk(path))
        else:
            subjects += subjects_of(path, named=True)
    return judge_subjects(subjects, files, [])


def judge_subjects(
    subjects: list[Subject], files: Iterable[tuple[Path, Kind | None]], alarms: list[Alarm]
) -> ScanResult:
    """Judge these subjects and what stands in these files; `alarms` are told beside it."""
    for path, kind in dict(files).items():
        try:
            subjects += subjects_of(path, kind)
        except DefinitionError as error:
            problem = error.problems[0]
            alarms.append(unread_alarm(problem.place, problem.message))
    for subject in subjects:
        alarms += judge_texts(subject)
        if subject.kind == "server":
            alarms += judge_server(subject)
    alarms += judge_names(subjects)
    kinds = Counter(subject.kind for subject in subjects)
    return ScanResult(tuple(sorted(set(alarms), key=by_place)), dict(sorted(kinds.items())))


def unread_alarm(place: Place, why: str) -> Alarm:
    """One file among many ends no scan, and is not passed over in silence either."""
    about = OWN_RULES["file.unreadable"]
    return Alarm(
        rule="file.unreadable",
        severity="warning",
        title=about.title,
        excerpt=show(why),
        place=place,
        subject=f"file:{place.file}",
        repair=about.repair,
    )


def unreadable(path: Path, message: str, code: str = "unreadable") -> DefinitionError:
    """Why a file or folder is not scanned."""
    return DefinitionError([Problem(Place(shown(path)), code, message)])


def shown(path: Path) -> str:
    """A path from here if it lies here, as text that can be printed."""
    full = os.fsencode(path.absolute()).decode("utf-8", "replace")
    here = os.fsencode(Path.cwd()).decode("utf-8", "replace")
    text = full.removeprefix(f"{here}/")
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def read_source(path: Path) -> SourceFile:
    """The text of a file.

    Raises:
        DefinitionError: it is gone, no plain file, too large, or not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise unreadable(path, "this is not a plain file")
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE + 1)
    except OSError as error:
        raise unreadable(path, f"cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_FILE:
        raise unreadable(path, f"the file has more than {MAX_FILE:,} bytes", "too_large")
    try:
        return SourceFile(shown(path), raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise unreadable(path, "this is not UTF-8 text", "not_utf8") from error


def walk(root: Path) -> Iterator[Path]:
    """The files below a folder that may be put before a model, in a fixed order.

    Links are followed, each folder once. A folder that cannot be read is told like a file.

    Raises:
        DefinitionError: there are too many of them.
    """
    entries = 0
    seen: set[tuple[int, int]] = set()
    closed: list[Path] = []
    _is_new(root, seen)
    for folder, names, files in os.walk(root, onerror=_told(closed), followlinks=True):
        here = Path(folder)
        names[:] = sorted(name for name in names if _is_new(here / name, seen))
        entries += len(names) + len(files)
        if entries > MAX_ENTRIES:
            raise unreadable(root, f"more than {MAX_ENTRIES:,} files", "too_large")
        yield from (here / name for name in sorted(files) if _is_read(name))
    yield from sorted(closed)


def _told(closed: list[Path]) -> Callable[[OSError], None]:
    def tell(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError) and error.filename:
            closed.append(Path(error.filename))

    return tell


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    """Tell whether a folder is to be walked: links may go in circles."""
    try:
        status = path.stat()
    except OSError:
        return False
    key = (status.st_dev, status.st_ino)
    is_new = path.name not in _PASSED_BY and key not in seen
    seen.add(key)
    return is_new


def _is_read(name: str) -> bool:
    return name.casefold() in _OURS or name.casefold().endswith((*_DOCUMENTS, ".json"))


def subjects_of(path: Path, kind: Kind | None = None, *, named: bool = False) -> list[Subject]:
    """What a file puts before a model.

    Args:
        path: the file.
        kind: what it is, when its folder says so.
        named: somebody asked for this very file, so there has to be something in it.

    Raises:
        DefinitionError: it cannot be read, or nothing in it can be scanned.
    """
    if path.suffix.casefold() != ".json" or (path.parent / MANIFEST_FILE).is_file():
        return [_document(path, kind)]
    source = read_source(path)
    if not named and not _WORTH_READING.search(source.text):
        return []
    try:
        strings = json_strings(source.text)
    except ValueError as error:
        raise unreadable(path, f"this is not JSON: {error}", "json_syntax") from error
    found = [*tools_in(source, strings), *servers_in(source, strings)]
    if named and not found and not _is_list(source.text, strings):
        message = (
            "no list of tools and no host's file: neither 'tools' nor 'mcpServers' stands here"
        )
        raise unreadable(path, message)
    return found


def _is_list(text: str, strings: list[JsonString]) -> bool:
    """Tell whether this is a list that happens to be empty."""
    keys = {one.path for one in strings if one.is_key}
    return bool(keys & {("tools",), ("result", "tools"), ("mcpServers",)}) or text.split() == ["[]"]


def _document(path: Path, kind: Kind | None) -> Subject:
    """A text file as one subject: a skill, what belongs to one, a card, a manifest, or a file."""
    source = read_source(path)
    head = split_frontmatter(source.text)[0] or ""
    text = (SubjectText(source.text, source),)
    skill = None if kind == "card" else _skill_folder(path)
    if skill is not None:
        return Subject(f"skill:{_skill_name(skill)}", "skill", text)
    if kind == "card" or _TRIGGERS.search(head):
        return Subject(f"card:{_named(head).get('id') or path.stem}", "card", text)
    if path.name.casefold() == MANIFEST_FILE.casefold():
        values = _named(source.text)
        identity = values.get("id") or f"{values.get('kind', 'file')}:{values.get('name', '?')}"
        return Subject(identity, "file", text)
    return Subject(f"file:{source.file}", "file", text)


def _named(text: str) -> dict[str, str]:
    return {key: value.strip() for key, value in _NAMED.findall(text)}


def _skill_folder(path: Path) -> Path | None:
    """The folder of the skill that a document belongs to."""
    if path.name.casefold() == SKILL_FILE.casefold():
        return path.parent
    found = (one for one in path.absolute().parents[:_LEVELS] if (one / SKILL_FILE).is_file())
    return next(found, None)


def _skill_name(folder: Path) -> str:
    try:
        with (folder / SKILL_FILE).open("rb") as stream:
            text = stream.read(1 << 16).decode("utf-8-sig", "replace")
    except OSError:
        text = ""
    return _named(split_frontmatter(text)[0] or "").get("name") or folder.absolute().name
