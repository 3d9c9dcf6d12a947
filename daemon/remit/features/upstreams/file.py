"""upstreams.yaml: read, and edited so that every other character stays as it was.

Each edit is proven: the new text must read as the old servers with exactly the meant change. What
cannot be edited so is left alone, and the person is told what to write. The file is replaced as a
whole, unless somebody else has changed it meanwhile.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml

from remit.config.definitions.files import Files
from remit.config.settings.home import Home, check_file
from remit.config.settings.table import Settings
from remit.config.strict.edit import Editor, find_pair, flow, is_flow, pair_lines, scalar
from remit.config.strict.kinds import Report
from remit.config.strict.yaml import MAX_BYTES, parse_yaml
from remit.errors import (
    ConflictError,
    DefinitionError,
    HomeError,
    InvalidDataError,
    NotFoundError,
    Place,
    Problem,
    TooLargeError,
    by_place,
)
from remit.features.upstreams.kinds import MAX_UPSTREAMS, UPSTREAM_FILE
from remit.model.names import did_you_mean
from remit.model.upstream import Upstream

ListEntry = Mapping[str, Any]
"""The keys of one server with plain values, as they are written."""
_START = "version: 1\nupstreams: {}\n"
_INDENT = 2
_NEW_MODE = 0o600


class UpstreamFile(msgspec.Struct, frozen=True):
    """A parsed upstreams.yaml with its problems; with an error in it nothing of it counts."""

    upstreams: tuple[Upstream, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What stops the load."""
        return tuple(problem for problem in self.problems if problem.is_error)


def parse_upstreams(raw: bytes, path: Path) -> UpstreamFile:
    """Read the bytes of a file; every mistake is told with its place."""
    file, report = str(path), Report()
    node, problems = parse_yaml(raw, file)
    report.extend(problems)
    found: Any = ()
    if node is None and not problems:
        report.add(Place(file), "empty_file", "the file is empty", "start with 'upstreams: {}'")
    elif node is not None:
        found = UPSTREAM_FILE.read(node, report)
    servers = found if isinstance(found, tuple) else ()
    if len(servers) > MAX_UPSTREAMS:
        message = f"{len(servers):,} servers; {MAX_UPSTREAMS} are the limit"
        report.add(Place(file), "too_large", message, "run another daemon for the others")
    shown = Files(file, contents={file: raw}).illustrate(report.shown())
    placed = (_in_folder(one, path.absolute().parent) for one in servers)
    return UpstreamFile(tuple(placed), tuple(sorted(shown, key=by_place)))


def _in_folder(one: Upstream, folder: Path) -> Upstream:
    """The same server, with the folder of its process written out."""
    if not one.cwd:
        return one
    return msgspec.structs.replace(one, cwd=str(folder / Path(one.cwd).expanduser()))


def inspect_upstreams(path: Path) -> UpstreamFile:
    """Read a file and tell everything about it; an absent one names no servers."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return UpstreamFile()
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        return UpstreamFile((), (Problem(Place(str(path)), "unreadable", message),))
    return parse_upstreams(raw, path)


def read_upstreams(path: Path) -> tuple[Upstream, ...]:
    """The servers that a file names; an absent file names none.

    Raises:
        DefinitionError: with every problem of the file and where it stands.
    """
    found = inspect_upstreams(path)
    if found.errors:
        raise DefinitionError(found.errors)
    return found.upstreams


def upstreams_path(settings: Settings) -> Path:
    """Where the servers are written down, whether or not the file exists.

    Raises:
        HomeError: it lies in the home, and somebody else may have written it.
    """
    if settings.upstreams:
        return settings.upstreams
    path = Home(settings.home).upstreams_file
    check_file(path, may_be_link=True)
    return path


def with_servers(text: str, entries: Mapping[str, ListEntry], path: Path) -> str:
    """The text with further servers at its end; those of the same name are replaced.

    Raises:
        InvalidDataError: one of the servers is wrong.
        DefinitionError: what was there cannot be read.
        ConflictError: the file is written in a way that is not edited here.
    """
    check_entries(entries)
    for name in entries:
        if name in _servers(text, path):
            text = without_server(text, name, path)
    before = _servers(text, path)
    new = _keeping_ends(_from_scratch(text), lambda plain: _added(plain, entries))
    meant = before | _servers("".join(_whole_file(entries)), path)
    _prove(new, meant, path)
    return new


def check_entries(entries: Mapping[str, ListEntry]) -> tuple[Problem, ...]:
    """Read servers as they would be written; answers the warnings.

    Raises:
        InvalidDataError: one of them is wrong; the message names it and says why.
    """
    warnings: list[Problem] = []
    for name, entry in entries.items():
        found = parse_upstreams("".join(_whole_file({name: entry})).encode(), Path("/"))
        if found.errors:
            first = found.errors[0]
            raise InvalidDataError(f"{name}: {first.message}", hint=first.hint)
        warnings += found.problems
    return tuple(warnings)


def _whole_file(entries: Mapping[str, ListEntry]) -> Iterator[str]:
    yield "upstreams:\n"
    yield from (f"{line}\n" for line in _lines(entries, _INDENT))


def without_server(text: str, name: str, path: Path) -> str:
    """The text without one server and the comments that stand on it.

    Raises:
        NotFoundError: there is no such server.
        DefinitionError: the file cannot be read.
        ConflictError: the file is written in a way that is not edited here.
    """
    before = _servers(text, path)
    if name not in before:
        hint = did_you_mean(name, before)
        raise NotFoundError(f"there is no server {name!r} in {path}", hint=hint)
    new = _keeping_ends(text, lambda plain: _removed(plain, name))
    _prove(new, {k: v for k, v in before.items() if k != name}, path)
    return new


def _servers(text: str, path: Path) -> dict[str, Upstream]:
    """What a text says, without where it stands; a text without any servers says nothing."""
    if not _says_something(text):
        return {}
    found = parse_upstreams(text.encode(), path)
    if found.errors:
        raise DefinitionError(found.errors)
    return {one.name: msgspec.structs.replace(one, place=None) for one in found.upstreams}


def _says_something(text: str) -> bool:
    lines = (line.strip() for line in text.lstrip("\ufeff").splitlines())
    return any(line and not line.startswith("#") for line in lines)


def _from_scratch(text: str) -> str:
    if _says_something(text):
        return text
    return f"{text}\n{_START}" if text and not text.endswith("\n") else text + _START


def _prove(new: str, meant: Mapping[str, Upstream], path: Path) -> None:
    try:
        holds = _servers(new, path) == meant
    except DefinitionError:
        holds = False
    if not holds:
        message = f"{path} is written in a way that is not edited here"
        raise ConflictError(message, hint="write the servers one key a line, or edit it by hand")


def _keeping_ends(text: str, edit: Callable[[str], str]) -> str:
    """Edit a text whose lines may end as on Windows, and which may begin with a mark."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    plain = text.removeprefix("\ufeff")
    windows = "\r\n" in plain and plain.count("\n") == plain.count("\r\n")
    if not windows:
        return mark + edit(plain)
    return mark + edit(plain.replace("\r\n", "\n")).replace("\n", "\r\n")


def _added(text: str, entries: Mapping[str, ListEntry]) -> str:
    editor = Editor(text)
    _, node = _mapping(editor)
    if node.value and is_flow(node):
        editor.append_pairs(node, [f"{scalar(k)}: {flow(v)}" for k, v in entries.items()])
    elif node.value:
        column = node.start_mark.column
        editor.insert_after(_end_of(editor, node.value[-1][1], column), _lines(entries, column))
    else:  # brackets with nothing in them
        start, end = node.start_mark, node.end_mark
        before, after = editor.line(start.line)[: start.column], editor.line(end.line)[end.column :]
        rest = before.rstrip() + after
        kept = [rest] if rest.strip() else []
        editor.replace_lines(start.line, end.line, [*kept, *_lines(entries, _INDENT)])
    return editor.result()


def _lines(entries: Mapping[str, ListEntry], column: int) -> list[str]:
    lines = []
    for name, entry in entries.items():
        lines.append(f"{' ' * column}{scalar(name)}:")
        for key, value in entry.items():
            lines += pair_lines(key, value, column + _INDENT)
    return lines


def _removed(text: str, name: str) -> str:
    editor = Editor(text)
    top, node = _mapping(editor)
    pairs = node.value
    at = next(number for number, (key, _) in enumerate(pairs) if key.value == name)
    if is_flow(node):
        return _cut(text, *_span_in_brackets(node, at))
    key, value = pairs[at]
    column = node.start_mark.column
    bound = _end_of(editor, pairs[at - 1][1], column) if at else top.start_mark.line
    first = editor.first_comment_line(key.start_mark.line, bound)
    editor.replace_lines(first, _end_of(editor, value, column), [])
    if len(pairs) == 1:
        colon = text.index(":", top.end_mark.index) + 1
        return _cut(editor.result(), colon, colon, " {}")
    return editor.result()


def _cut(text: str, start: int, end: int, new: str = "") -> str:
    return text[:start] + new + text[end:]


def _span_in_brackets(node: yaml.MappingNode, at: int) -> tuple[int, int]:
    """From where to where an entry and one comma stand."""
    pairs = node.value
    if at + 1 < len(pairs):
        return pairs[at][0].start_mark.index, pairs[at + 1][0].start_mark.index
    start = pairs[at - 1][1].end_mark.index if at else pairs[at][0].start_mark.index
    return start, pairs[at][1].end_mark.index


def _mapping(editor: Editor) -> tuple[yaml.ScalarNode, yaml.MappingNode]:
    pair = find_pair(editor.root, "upstreams") if editor.root is not None else None
    if pair is None or not isinstance(pair[1], yaml.MappingNode):  # it was read, so it is one
        raise ConflictError("there is no mapping 'upstreams'", hint="write upstreams: {}")
    return pair[0], pair[1]


def _end_of(editor: Editor, node: yaml.Node, column: int) -> int:
    """The last line of a server, with the comments that are indented as its keys are."""
    last = line = editor.last_line(node)
    count = editor.text.count("\n") + (not editor.text.endswith("\n"))
    while line + 1 < count:
        line += 1
        shown = editor.line(line)
        if shown.strip() and not shown.lstrip().startswith("#"):
            break
        if shown.strip() and len(shown) - len(shown.lstrip()) > column:
            last = line
    return last


def change_upstreams(path: Path, edit: Callable[[str], str]) -> None:
    """Replace the text of the file by what `edit` makes of it; a link keeps leading where it did.

    Raises:
        ConflictError: somebody else has written to it meanwhile.
        TooLargeError: the new text has more bytes than are read.
        HomeError: it cannot be written.
        RemitError: whatever `edit` raises; then nothing is written.
    """
    target = path.resolve()
    before = _read(target)
    after = edit((before or b"").decode("utf-8")).encode()
    if len(after) > MAX_BYTES:
        raise TooLargeError(f"{path} would have more than {MAX_BYTES:,} bytes")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(target, before, after)
    except OSError as error:
        message = f"{target} cannot be written: {error.strerror or error}"
        raise HomeError(message, hint="make room or rights there, or name another file") from error


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise DefinitionError([Problem(Place(str(path)), "unreadable", message)]) from error
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = Place(str(path), raw[: error.start].count(b"\n") + 1)
        problem = Problem(place, "not_utf8", "this is not UTF-8", "save the file as UTF-8")
        raise DefinitionError([problem]) from error
    return raw


def _replace(path: Path, before: bytes | None, after: bytes) -> None:
    """Write beside the file and rename, so that a cut-off run leaves the old text."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    mode = path.stat().st_mode & 0o777 if before is not None else _NEW_MODE
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(after)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        if _read(path) != before:
            message = f"{path} was changed by somebody else just now"
            raise ConflictError(message, hint="look at it and try again")
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
