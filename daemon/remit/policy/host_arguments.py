"""Arguments that make the host of a model offer what a grant allows, and nothing else."""

from collections.abc import Mapping

import msgspec

from remit.model.exposure import SEARCH
from remit.model.grant import Grant
from remit.model.meta_tool import CALL_TOOL, META_TOOL
from remit.policy.toolnames import held_back, names_for
from remit.policy.universe import Universe

SERVER_NAME = "remit"
"""Whoever holds it is given the tool to search with."""


class Server(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the host starts the server of our tools; nothing here may be a secret."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = {}


def claude_arguments(universe: Universe, grant: Grant, server: Server) -> list[str]:
    """Arguments for the Claude command line: exactly its tools that are held, and ours.

    `--allowedTools` alone only adds to what the host allows anyway. `--tools` is all that the model
    gets of the host's own, and `--strict-mcp-config` leaves out every other server.
    """
    shown = grant.exposed - held_back(universe, grant.exposed)
    names = names_for(universe, shown)
    tools = [names[event] for event in sorted(names)]
    served = [f"mcp__{SERVER_NAME}__{name}" for name in (*tools, *_meta_tools(grant))]
    config = msgspec.json.encode({"mcpServers": {SERVER_NAME: server}}).decode()
    held = sorted(grant.claude_tools)
    own = dict.fromkeys(_bare(tool) for tool in held if not tool.startswith("mcp__"))
    arguments = ["--allowedTools", ",".join([*held, *served]), "--tools", ",".join(own)]
    if grant.denied_tools:
        arguments += ["--disallowedTools", ",".join(sorted(grant.denied_tools))]
    return [*arguments, "--mcp-config", config, "--strict-mcp-config"]


def _bare(tool: str) -> str:
    """The name of a tool without the rule behind it: `Bash(git:*)` is a part of `Bash`."""
    return tool.partition("(")[0]


def _meta_tools(grant: Grant) -> list[str]:
    """The tools that are no events; each call through them is decided like any other."""
    if SEARCH not in grant.events:
        return []
    return [META_TOOL] if grant.exposure == "all" else [META_TOOL, CALL_TOOL]
