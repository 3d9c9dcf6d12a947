"""The MCP servers that a host's own configuration names.

Claude Code (`.mcp.json`, `~/.claude.json`), Claude Desktop and Cursor write `mcpServers`; VS Code
writes `servers` and `inputs`, by themselves or under `mcp`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from remit.config.strict.lenient_json import read_lenient_json
from remit.errors import InvalidDataError

_SHAPES = "{mcpServers: {…}} or {servers: {…}}"


class HostFile(msgspec.Struct, frozen=True):
    """What a host's file says about servers; nothing of it is checked yet."""

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
    content = read_lenient_json(path)
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
    return HostFile(servers, _inputs(content), tuple(_notes(content, folder)))


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


def _notes(content: dict[str, Any], folder: Path) -> Iterator[str]:
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
