"""Files that make the host of a model start our tools, in the form that each host reads.

Nothing here is a secret: a token is named by the variable or the question that holds it.
The forms are those of code.claude.com/docs/en/mcp, cursor.com/docs/mcp and
code.visualstudio.com/docs/copilot/reference/mcp-configuration in November 2026.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec

from remit.policy.host_arguments import SERVER_NAME, Server

Host = Literal["claude-code", "claude-desktop", "vscode", "cursor"]
HOSTS: tuple[Host, ...] = get_args(Host)
TOKEN_VARIABLE = "REMIT_TOKEN"  # noqa: S105 - the name of a variable
_TOKEN_INPUT = "remit-token"  # noqa: S105 - what VS Code calls its question

FILES: dict[Host, str] = {
    "claude-code": ".mcp.json",
    "claude-desktop": "claude_desktop_config.json",
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
}
"""What each host reads: from the folder of the project, or Claude Desktop from its own."""


def stdio_config(host: Host, server: Server) -> dict[str, Any]:
    """The file of a host that starts a process for our tools."""
    entry = msgspec.to_builtins(server)
    if host in ("vscode", "cursor"):
        entry = {"type": "stdio", **entry}
    return {servers_key(host): {SERVER_NAME: entry}}


def http_config(host: Host, url: str) -> dict[str, Any] | None:
    """The file of a host that asks a running daemon; None when the host has no way to do so.

    Claude Desktop skips an entry with an address, and starts a process with a few variables only,
    so a token for it would have to stand in the file.
    """
    make = _OVER_HTTP.get(host)
    return None if make is None else make(url)


def servers_key(host: Host) -> str:
    """Under which key of its file a host lists servers."""
    return "servers" if host == "vscode" else "mcpServers"


def _claude_code(url: str) -> dict[str, Any]:
    return {"mcpServers": {SERVER_NAME: {"type": "http", **_asking(url, f"${{{TOKEN_VARIABLE}}}")}}}


def _cursor(url: str) -> dict[str, Any]:
    return {"mcpServers": {SERVER_NAME: _asking(url, f"${{env:{TOKEN_VARIABLE}}}")}}


def _vscode(url: str) -> dict[str, Any]:
    question = {
        "type": "promptString",
        "id": _TOKEN_INPUT,
        "description": "Bearer token for remit (remit key token NAME)",
        "password": True,
    }
    entry = {"type": "http", **_asking(url, f"${{input:{_TOKEN_INPUT}}}")}
    return {"inputs": [question], "servers": {SERVER_NAME: entry}}


def _asking(url: str, token: str) -> dict[str, Any]:
    return {"url": url, "headers": {"Authorization": f"Bearer {token}"}}


_OVER_HTTP: dict[Host, Callable[[str], dict[str, Any]]] = {
    "claude-code": _claude_code,
    "cursor": _cursor,
    "vscode": _vscode,
}
