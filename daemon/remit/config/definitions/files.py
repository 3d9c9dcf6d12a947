"""The files behind a set of definitions, read from disk or given as texts, and what they define.

Nothing is read twice: the bytes that were parsed are the bytes that a caret is drawn under. Every
file is read to its end, and every mistake is kept.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from remit.config.definitions.capabilities import read_capability_file
from remit.config.definitions.compositions import read_composition_file
from remit.config.strict.kinds import Report
from remit.config.strict.yaml import LINE_BREAK, MAX_BYTES, Node, Scalar, parse_yaml, read_text
from remit.errors import Place, Problem
from remit.model.capability import Capability
from remit.policy.catalogue import Definitions

MAX_FILES = 5_000
_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,\[\]{}#]+")


class Files(msgspec.Struct):
    """One catalogue and its compositions, as bytes by display name."""

    catalogue: str
    compositions: list[str] = []
    contents: dict[str, bytes] = {}
    folder: str = ""
    """The compositions folder on disk; empty for texts, which have no `source:` files."""
    problems: list[Problem] = []
    sources: dict[str, str] = {}
    """The display names of the `source:` files that were read, by the names they go by."""
    kept: bool = False
    """These bytes come from memory: nothing more is read from disk."""

    def same_as(self, other: "Files") -> bool:
        """Tell whether the other files say the same, byte by byte."""
        return (self.catalogue, self.compositions, self.contents) == (
            other.catalogue,
            other.compositions,
            other.contents,
        )

    def illustrate(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Add to each problem the line it stands on, so that a caret can be drawn."""
        problems = tuple(problems)
        lines = {file: self._lines(file) for file in {problem.place.file for problem in problems}}
        return tuple(_illustrated(problem, lines[problem.place.file]) for problem in problems)

    def _lines(self, file: str) -> list[str]:
        raw = self.contents.get(file, b"")
        text = raw.decode("utf-8-sig", "replace") if len(raw) <= MAX_BYTES else ""
        return LINE_BREAK.split(text)


def parse_definitions(files: Files) -> Definitions:
    """Parse a set of files. The problems are in the result; nothing is raised."""
    report = Report()
    report.extend(files.problems)
    capabilities: tuple[Capability, ...] = ()
    node, usable = _parse(files, files.catalogue, report)
    if usable:
        capabilities = read_capability_file(node, files.catalogue, report)
    compositions = []
    for name in files.compositions:
        node, usable = _parse(files, name, report)
        if usable:
            compositions.append(read_composition_file(node, name, report, _Opener(files)))
    found = tuple(composition for composition in compositions if composition is not None)
    return Definitions(capabilities, found, report.shown())


def read_files(catalogue: Path, compositions: Path | None) -> Files:
    """Read a catalogue and all compositions of a folder; what is unreadable becomes a problem."""
    files = Files(catalogue=_display(catalogue))
    _read_into(files, catalogue)
    if compositions is None:
        return files
    files.folder = str(compositions)
    if not compositions.is_dir():
        message = "there is no such folder of compositions"
        files.problems.append(Problem(Place(_display(compositions)), "not_found", message))
        return files
    try:
        found = sorted(path for path in compositions.iterdir() if _is_composition(path))
    except OSError as error:
        files.problems.append(_unreadable(compositions, error.strerror or str(error)))
        return files
    if len(found) > MAX_FILES:
        message = f"{len(found):,} compositions; {MAX_FILES:,} are the limit"
        files.problems.append(Problem(Place(_display(compositions)), "too_large", message))
    for path in found[:MAX_FILES]:
        # A name that ends like a profile and is none must not vanish in silence.
        if path.exists() and not path.is_file():
            files.problems.append(_unreadable(path, "this is not a file"))
        elif _read_into(files, path):
            files.compositions.append(_display(path))
    return files


def read_source(files: Files, name: str) -> tuple[str, bytes | str]:
    """Read a `source:` file: its display name and its bytes, or a sentence why not.

    INVARIANT: after resolving every link the file lies inside the compositions folder.
    """
    if name in files.sources:  # read already: the same bytes are meant
        return files.sources[name], files.contents[files.sources[name]]
    if files.kept or not files.folder:
        return name, "definitions given as text cannot name files"
    try:
        path = _inside(Path(files.folder), name)
        if path is None:
            return name, f"{name!r} lies outside the compositions folder"
        if not path.is_file():
            return name, f"there is no file {name!r} in the compositions folder"
        content = _read_bounded(path)
    except (OSError, ValueError, RuntimeError) as error:  # too long, NUL, a circle of links
        return name, f"{name!r} cannot be read: {error}"
    shown = _display(Path(files.folder) / name)
    files.contents[shown] = content
    files.sources[name] = shown
    return shown, content


def edited(
    files: Files, catalogue: str | None, compositions: dict[str, str], remove: list[str]
) -> Files:
    """The same files with some of them replaced by texts, added or left out; nothing is written.

    Raises:
        ValueError: a name is not a plain file name that ends in .yaml.
    """
    by_file_name = {Path(name).name: name for name in files.compositions}
    contents = dict(files.contents)
    listed = {name for name in files.compositions if Path(name).name not in remove}
    for name, text in compositions.items():
        if Path(name).name != name or Path(name).suffix not in (".yaml", ".yml"):
            raise ValueError(f"{name!r} is not a file name such as 'reviewer.yaml'")
        shown = by_file_name.get(name, str(Path(files.folder) / name))
        contents[shown] = text.encode()
        listed.add(shown)
    if catalogue is not None:
        contents[files.catalogue] = catalogue.encode()
    return Files(files.catalogue, sorted(listed), contents, files.folder)


def starter_dir() -> Path:
    """The starter catalogue's folder: inside the installed package, else the checkout's root."""
    package = Path(__file__).parents[2]
    packaged = package / "starter"
    return packaged if packaged.is_dir() else package.parent.parent


def _illustrated(problem: Problem, lines: list[str]) -> Problem:
    at = problem.place.line - 1
    if problem.source or at >= len(lines):
        return problem
    token = _TOKEN.match(lines[at], problem.place.column - 1)
    width = len(token.group().removesuffix(":")) if token else 1
    return msgspec.structs.replace(problem, source=lines[at], width=width)


def _inside(folder: Path, name: str) -> Path | None:
    root = folder.resolve()
    path = (root / name).resolve()
    return path if path.is_relative_to(root) else None


def _is_composition(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml") and not path.name.startswith(".")


def _read_into(files: Files, path: Path) -> bool:
    name = _display(path)
    try:
        files.contents[name] = _read_bounded(path)
    except OSError as error:
        files.problems.append(_unreadable(path, error.strerror or str(error)))
        return False
    return True


def _unreadable(path: Path, why: str) -> Problem:
    return Problem(Place(_display(path)), "unreadable", f"cannot be read: {why}")


def _read_bounded(path: Path) -> bytes:
    """Read at most one byte more than the limit: the parser refuses what is longer."""
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _display(path: Path) -> str:
    """The path as short as it can be told from here."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _parse(files: Files, name: str, report: Report) -> tuple[Node | None, bool]:
    """The document of a file, and whether it was read; an empty file reads as nothing."""
    if name not in files.contents:
        return None, False
    node, problems = parse_yaml(files.contents[name], name)
    report.extend(problems)
    return node, node is not None or not problems


class _Opener:
    """Opens `source:` files of components for one set of files."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __call__(self, component: str, source: Scalar, report: Report) -> Node | None:
        shown, found = read_source(self._files, source.text)
        if isinstance(found, str):
            hint = "a source is a path inside the compositions folder"
            report.add(source.place, "bad_source", found, hint)
            return None
        if component == "prompt":
            text, problems = read_text(found, shown)
            if not text.strip() and not problems:
                report.add(source.place, "bad_source", f"{shown} is empty")
            report.extend(problems)
            return None if problems else Scalar(text, text, Place(shown))
        node, problems = parse_yaml(found, shown)
        report.extend(problems)
        if node is None and not problems:
            report.add(source.place, "bad_source", f"{shown} is empty")
        return node
