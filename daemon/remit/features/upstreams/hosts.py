"""The MCP servers of a host's own configuration, and what becomes of them in upstreams.yaml.

Claude Code (`.mcp.json`, `~/.claude.json`), Claude Desktop and Cursor write `mcpServers`; VS Code
writes `servers` and `inputs`, by themselves or under `mcp`. Everything that a host says is either
imported, or told: as a note when the server works without it, as an obstacle when it does not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from remit.config.strict.json import read_commented_json
from remit.errors import InvalidDataError
from remit.features.upstreams.file import check_entries
from remit.features.upstreams.secrets import (
    NeededSecret,
    SecretNames,
    UnusableError,
    check_open,
    import_value,
    referenced,
)

_SHAPES = "{mcpServers: {…}} or {servers: {…}}"
_KNOWN = frozenset({"command", "args", "env", "cwd", "url", "headers", "type", "transport"})
_OTHER_URLS = ("serverUrl", "httpUrl")
_SWITCHES = ("disabled", "enabled")
_OVER_STREAMS = frozenset({"stdio"})
_OVER_WEB = frozenset({"http", "streamable-http", "streamableHttp", "streamable_http"})
_LONGEST = 32


class HostFile(msgspec.Struct, frozen=True):
    """The servers in a host's file, not checked yet."""

    servers: Mapping[str, Any]
    inputs: Mapping[str, str] = {}
    """What the host asks the user for, by id, with what it says then."""
    notes: tuple[str, ...] = ()
    """What of the file was not looked at."""


def read_host_file(path: Path, folder: Path) -> HostFile:
    """Read a host's file; of the servers that it keeps for projects, those of `folder` count.

    Raises:
        DefinitionError: the file cannot be read.
        InvalidDataError: it names no servers in any form that is known.
    """
    content = read_commented_json(path)
    if not isinstance(content, dict):
        raise InvalidDataError(f"{path} holds no object", hint=f"write {_SHAPES}")
    groups = dict(_groups(content, folder))
    if not groups:
        keys = ", ".join(sorted(content)[:8]) or "nothing"
        hint = f"a host writes {_SHAPES}; this one has: {keys}"
        raise InvalidDataError(f"{path} names no MCP servers", hint=hint)
    servers: dict[str, Any] = {}
    for where, group in groups.items():
        if not isinstance(group, dict):
            raise InvalidDataError(f"{path}: {where} is not an object", hint=f"write {_SHAPES}")
        twice = sorted(servers.keys() & group.keys())
        if twice:
            message = f"{path}: the server {twice[0]!r} stands in two places"
            raise InvalidDataError(message, hint=f"also under {where}; keep one of them")
        servers |= group
    return HostFile(servers, _inputs(content), tuple(_project_notes(content, folder)))


def _groups(content: dict[str, Any], folder: Path) -> Iterator[tuple[str, Any]]:
    inner = content.get("mcp")
    project = _projects(content).get(str(folder))
    for holder, where in ((content, ""), (inner, "mcp."), (project, f"projects.{folder}.")):
        if not isinstance(holder, dict):
            continue
        for key in ("mcpServers", "servers"):
            if key in holder:
                yield f"{where}{key}", holder[key]


def _projects(content: dict[str, Any]) -> dict[str, Any]:
    found = content.get("projects")
    return found if isinstance(found, dict) else {}


def _project_notes(content: dict[str, Any], folder: Path) -> Iterator[str]:
    for name, project in sorted(_projects(content).items()):
        servers = project.get("mcpServers") if isinstance(project, dict) else None
        if servers and name != str(folder):
            yield f"the servers of the project {name} were not looked at: run this command there"


def _inputs(content: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for holder in (content, content.get("mcp")):
        asked = holder.get("inputs") if isinstance(holder, dict) else None
        for one in asked if isinstance(asked, list) else []:
            if isinstance(one, dict) and isinstance(one.get("id"), str):
                found[one["id"]] = str(one.get("description") or one["id"])
    return found


class ImportedServer(msgspec.Struct, frozen=True):
    """A server that can be taken over."""

    name: str
    source: str
    """Its name in the host's file."""
    entry: Mapping[str, Any]
    needs: tuple[NeededSecret, ...] = ()
    notes: tuple[str, ...] = ()


class ImportObstacle(msgspec.Struct, frozen=True):
    """Why a server cannot be taken over."""

    source: str
    message: str
    hint: str = ""


class HostImport(msgspec.Struct, frozen=True):
    """The result of an import: the servers that are taken over, and those that are not."""

    taken: tuple[ImportedServer, ...] = ()
    skipped: tuple[ImportObstacle, ...] = ()
    """Servers that the host itself does not start."""
    obstacles: tuple[ImportObstacle, ...] = ()


def server_names(sources: Iterable[str]) -> dict[str, str]:
    """Names that remit accepts, by the names of a host; the same ones whatever the order.

    A name that needs no change is kept before others may have it.
    """
    ordered = sorted(set(sources))
    plain = {source: _plain(source) for source in ordered}
    found: dict[str, str] = {}
    used = {source for source in ordered if plain[source] == source}
    for source in ordered:
        name = plain[source]
        number = 1
        while name in used and name != source:
            number += 1
            name = f"{plain[source][: _LONGEST - 1 - len(str(number))]}-{number}"
        used.add(name)
        found[source] = name
    return found


def _plain(source: str) -> str:
    text = re.sub(r"[^a-z0-9_]+", "-", source.lower()).strip("-_")
    if not text:
        import hashlib  # noqa: PLC0415 - only for names without a single letter of ours

        return f"server-{hashlib.sha256(source.encode('utf-8', 'replace')).hexdigest()[:8]}"
    if not text[0].isalpha():
        text = f"server-{text}"
    return text[:_LONGEST].rstrip("-_")


def import_servers(
    host: HostFile, chosen: Iterable[str], extra: Mapping[str, Any], taken_secrets: Iterable[str]
) -> HostImport:
    """Take servers over.

    Args:
        host: what the file says.
        chosen: names of servers in it.
        extra: further keys for each of them.
        taken_secrets: names of secrets that mean something already.
    """
    chosen = set(chosen)
    ours = server_names(host.servers)
    every = (text for raw in host.servers.values() for text in _texts(raw))
    names = SecretNames({*taken_secrets, *(name for text in every for name in referenced(text))})
    taken, skipped, obstacles = [], [], []
    for source in sorted(chosen):
        raw = host.servers[source]
        if why := _passed_over(raw):
            skipped.append(ImportObstacle(source, why))
            continue
        try:
            taken.append(_import(ours[source], source, raw, extra, names, host.inputs))
        except UnusableError as error:
            obstacles.append(ImportObstacle(source, error.message, error.hint))
    return HostImport(tuple(taken), tuple(skipped), tuple(obstacles))


def _passed_over(raw: Any) -> str:
    """Why a server is left out that could be taken over; empty when it is not."""
    if not isinstance(raw, dict):
        return ""
    if raw.get("disabled") is True or raw.get("enabled") is False:
        return "the host has it switched off"
    args = raw.get("args")
    words = [raw.get("command"), *(args if isinstance(args, list) else ())]
    names = [word.rpartition("/")[2] for word in words if isinstance(word, str)]
    is_ours = any(pair == ("remit", "mcp") for pair in pairwise(names))
    return "it is remit itself" if is_ours else ""


def _texts(raw: Any) -> Iterator[str]:
    for key in ("env", "headers"):
        values = raw.get(key) if isinstance(raw, dict) else None
        if isinstance(values, dict):
            yield from (value for value in values.values() if isinstance(value, str))


def _import(
    name: str,
    source: str,
    raw: Any,
    extra: Mapping[str, Any],
    names: SecretNames,
    inputs: Mapping[str, str],
) -> ImportedServer:
    if not isinstance(raw, dict):
        raise UnusableError("it is not an object", "write {command, args} or {url}")
    way = _way(raw)
    entry: dict[str, Any] = dict(_reach(raw, way))
    needs: list[NeededSecret] = []
    notes = list(_notes(raw, way))
    key = "env" if way == "command" else "headers"
    values: dict[str, Any] = {}
    for place, text in _pairs(raw.get(key), key, notes):
        values[place], needed = import_value(place, text, server=name, names=names, inputs=inputs)
        needs += [needed] if needed else []
    if values:
        entry[key] = values
    try:
        check_entries({name: {**entry, **extra}})
    except InvalidDataError as error:
        raise UnusableError(error.message.removeprefix(f"{name}: "), error.hint) from error
    return ImportedServer(name, source, {**entry, **extra}, tuple(needs), tuple(notes))


def _way(raw: dict[str, Any]) -> str:
    """Whether it is a command or an address."""
    kind = raw.get("type", raw.get("transport"))
    url = _url(raw)
    if (url is None) == ("command" not in raw):
        raise UnusableError("it needs either 'command' or 'url'", "repair it in the host's file")
    way = "command" if url is None else "url"
    if kind is None or kind in (_OVER_STREAMS if way == "command" else _OVER_WEB):
        return way
    if kind == "sse":
        hint = "use its address for streamable HTTP, which most such servers have, with type http"
        raise UnusableError("it speaks SSE alone, an old transport that is not spoken here", hint)
    raise UnusableError(f"its type {str(kind)[:40]!r} is not understood", "write stdio or http")


def _url(raw: dict[str, Any]) -> Any:
    return next((raw[key] for key in ("url", *_OTHER_URLS) if key in raw), None)


def _reach(raw: dict[str, Any], way: str) -> Iterator[tuple[str, Any]]:
    if way == "url":
        url = _text(_url(raw), "its url")
        check_open("its address", url)
        yield "url", url
        return
    command = _text(raw["command"], "its command")
    check_open("its command", command)
    yield "command", command
    args = raw.get("args") or []
    if not isinstance(args, list):
        raise UnusableError("its args are not a list", 'write ["-y", "package"]')
    plain = [_text(arg, f"argument {number}") for number, arg in enumerate(args, 1)]
    for number, arg in enumerate(plain):
        check_open(f"argument {number + 1}", arg, flag=plain[number - 1] if number else "")
    if plain:
        yield "args", plain
    if raw.get("cwd"):
        yield "cwd", _folder(raw["cwd"])


def _folder(value: Any) -> str:
    cwd = _text(value, "its cwd")
    check_open("its cwd", cwd)
    if not cwd.startswith(("/", "~")):
        raise UnusableError("its cwd starts at a folder that only the host knows", "write it out")
    return cwd


def _text(value: Any, what: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise UnusableError(f"{what} is not text", "repair it in the host's file")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnusableError(f"{what} is not proper text", "repair it in the host's file") from None
    return value


def _pairs(found: Any, key: str, notes: list[str]) -> Iterator[tuple[str, str]]:
    if found is not None and not isinstance(found, dict):
        raise UnusableError(f"its {key} is not an object", 'write {"NAME": "text"}')
    for name, value in (found or {}).items():
        if value is None:
            notes.append(f"{key} {name} has no value and was left out")
        elif isinstance(value, bool):
            yield name, str(value).lower()
        else:
            yield name, _text(value, f"{key} {name}")


def _notes(raw: dict[str, Any], way: str) -> Iterator[str]:
    other = ("headers",) if way == "command" else ("args", "env", "cwd")
    for key in sorted(raw):
        if key in other and raw[key]:
            yield f"{key!r} means nothing beside {way!r} and was left out"
        elif key not in _KNOWN and key not in _OTHER_URLS and key not in _SWITCHES:
            yield f"{key[:60]!r} is not understood here and was left out"
    if way == "command" and any(map(_is_beside, (raw.get("command"), *(raw.get("args") or ())))):
        yield "it names a file relative to the host's folder: set cwd to that folder"


def _is_beside(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("./", "../"))
