"""upstreams.yaml: the upstream MCP servers, and what of them is let in."""

from pathlib import Path
from typing import Any

import msgspec

from remit.config.definitions.files import Files
from remit.config.settings.home import Home, check_file
from remit.config.settings.table import Settings
from remit.config.strict.kinds import (
    BAD,
    ChoiceKind,
    Field,
    ListKind,
    MapKind,
    RecordKind,
    Report,
    TextKind,
    WholeKind,
    file_kind,
)
from remit.config.strict.yaml import MAX_BYTES, Mapping, Node, Scalar, Sequence, parse_yaml
from remit.errors import DefinitionError, Place, Problem, by_place
from remit.features.upstreams.kinds import (
    ENVIRONMENT,
    HEADERS,
    PATTERNS,
    EffectsKind,
    SecondsKind,
    UrlKind,
)
from remit.features.upstreams.secrets import secret_argument
from remit.model.upstream import Upstream

SERVER_NAME = r"[a-z][a-z0-9_-]{0,31}"
MAX_UPSTREAMS = 256
MAX_CONCURRENCY = 256
TRUST = ("review", "on_first_use")
STARTS = ("lazy", "eager")
_TARGETS = ("command", "url")
_ONLY_WITH = {"args": "command", "env": "command", "cwd": "command", "headers": "url"}


class _ArgumentsKind(ListKind, frozen=True):
    """Arguments of a command."""

    def read(self, node: Node, report: Report) -> Any:
        """Read them; everybody on the machine sees them, so a secret among them is warned of."""
        items = node.items if isinstance(node, Sequence) else []
        texts = [item.text if isinstance(item, Scalar) else "" for item in items]
        for item, text, before in zip(items, texts, ["", *texts], strict=False):
            if secret_argument(text, before):
                message = "this argument looks like a secret, and everybody here can see it"
                hint = "let the server read it from a variable: env: {NAME: {secret: NAME}}"
                problem = Problem(item.place, "secret_in_file", message, hint, "warning")
                report.extend([problem])
        return super().read(node, report)


_TEXT = TextKind(limit=8_192, pattern=r"[^\x00]*", what="text")
_HOME = r"(?!~[^/])"
"""The home of somebody else is not looked up."""
_TOOLS = "Names of tools; a * at the end stands for any ending"

UPSTREAM_FIELDS: dict[str, Field] = {
    "command": Field(
        TextKind(limit=4_096, pattern=_HOME + r"[^\x00\r\n]+", what="a command"),
        "Program that speaks MCP over its standard streams: a name on PATH or a full path",
    ),
    "args": Field(
        _ArgumentsKind(_TEXT), "Its arguments; they are seen by everybody on the machine"
    ),
    "env": Field(ENVIRONMENT, "Variables of its process, each as text or {secret: NAME}"),
    "cwd": Field(
        TextKind(limit=4_096, pattern=_HOME + r"[^\x00]+", what="a folder"),
        "The folder in which it runs; a relative one starts at this file",
    ),
    "url": Field(UrlKind(limit=2_048), "Where a server listens, as in https://example.org/mcp"),
    "headers": Field(HEADERS, "Headers of each request, each as text or {secret: NAME}"),
    "include": Field(PATTERNS, f"{_TOOLS}; only these are let in, all when absent"),
    "exclude": Field(PATTERNS, f"{_TOOLS}; these are never let in"),
    "effects": Field(EffectsKind(), "What tools do, by name or pattern, whatever they say"),
    "trust": Field(
        ChoiceKind(TRUST),
        "review: each tool waits for an operator; on_first_use: only one that changed does",
    ),
    "start": Field(ChoiceKind(STARTS), "lazy: with the first call; eager: with the daemon"),
    "timeout": Field(SecondsKind(), "Seconds for one call"),
    "start_timeout": Field(SecondsKind(), "Seconds until it must have listed its tools"),
    "concurrency": Field(WholeKind(1, MAX_CONCURRENCY), "Calls that may run at once"),
}


class _UpstreamKind(RecordKind, frozen=True):
    """One server: reached by exactly one way."""

    def read(self, node: Node, report: Report) -> Any:
        found = super().read(node, report)
        if not isinstance(node, Mapping):
            return found
        keys = {key.text: key.place for key, _ in node.pairs}
        ways = [name for name in _TARGETS if name in keys]
        if len(ways) != 1:
            message = "a server has either 'command' or 'url'"
            hint = "write the program to start, or where the server listens"
            report.add(node.place, "upstream_target", message, hint)
            return BAD
        for name, way in _ONLY_WITH.items():
            if name in keys and way not in keys:
                message = f"{name!r} means nothing beside {ways[0]!r}"
                report.add(keys[name], "upstream_target", message, f"it belongs to {way!r}")
        _check_command(node, report)
        return found

    def schema(self) -> dict[str, Any]:
        """An object with one of the two ways."""
        one = [{"required": [name]} for name in _TARGETS]
        needs = {name: [way] for name, way in _ONLY_WITH.items()}
        return super().schema() | {"oneOf": one, "dependentRequired": needs}


def _check_command(node: Mapping, report: Report) -> None:
    for key, value in node.pairs:
        text = getattr(value, "value", None)
        if key.text == "command" and isinstance(text, str) and "/" not in text and " " in text:
            hint = f"write command: {text.split()[0]} and put the rest into args: [...]"
            report.add(value.place, "invalid_name", "a command is a single word", hint)


def _upstream(name: str, place: Place, values: dict[str, Any]) -> Upstream:
    env, secret_env = values.pop("env", ({}, {}))
    headers, secret_headers = values.pop("headers", ({}, {}))
    return Upstream(
        name=name,
        place=place,
        env=env,
        secret_env=secret_env,
        headers=headers,
        secret_headers=secret_headers,
        **values,
    )


UPSTREAM_FILE = file_kind(
    "upstreams.yaml",
    "upstreams",
    MapKind(
        TextKind(pattern=SERVER_NAME, what="the name of a server"),
        _UpstreamKind(UPSTREAM_FIELDS, lambda values, _node: values, "a server"),
        _upstream,
    ),
    "The servers, by name",
)


class UpstreamFile(msgspec.Struct, frozen=True):
    """What a file says, and what is wrong with it; with an error in it nothing of it counts."""

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
