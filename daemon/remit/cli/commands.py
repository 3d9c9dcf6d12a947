"""The commands: the table of them, the group that imports one when it runs, how they were called.

Texts of the daemon and of the definitions name `remit`; what is shown to people names the command
that they typed, so that every command on a screen can be typed as it stands. Answers for programs
(`--json`) always say `remit`.
"""

import functools
import importlib
import os
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from remit.model.names import did_you_mean

COMPLETE = "_REMIT_COMPLETE"
"""The variable that the completion script of a shell sets."""
_CANONICAL = "remit"
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("questions", "Check definitions and show every mistake."),
    "resolve": ("questions", "Show what a profile grants."),
    "can": ("questions", "May a profile or agent use an event?"),
    "why": ("questions", "Why may it, or why not? With file, line and column."),
    "who-can": ("questions", "Who may use an event?"),
    "gives": ("questions", "What does a capability give?"),
    "plan": ("edits", "Show what an edit would grant and take away."),
    "reload": ("edits", "Let the daemon read its definitions again."),
    "apply": ("edits", "Show what edited definitions change, ask, put them in force."),
    "lint": ("definitions", "Find drift between events, capabilities and profiles."),
    "migrate": ("definitions", "Turn an explicit list into capabilities."),
    "schema": ("definitions", "Print a JSON Schema for editors."),
    "graph": ("definitions", "Draw profiles, capabilities, requires and denials."),
    "tools": ("tools", "List the tools of a profile or agent, with their token bill."),
    "discover": ("tools", "Find the tools that fit a request, with their token bill."),
    "link": ("cards", "Show which tools and skills a mission would be given."),
    "bill": ("audit", "Show what was put before models, in tokens."),
    "cards": ("cards", "List, check and try the cards that agents are given."),
    "scan": ("cards", "Look for poisoned tools, skills and cards, on this machine alone."),
    "claude-args": ("tools", "Print arguments for the Claude command line."),
    "mcp-config": ("tools", "Print the file that gives a host the tools of a profile."),
    "mcp": ("mcp", "Serve the tools of an agent to an MCP host."),
    "serve": ("daemon", "Run the daemon in the foreground."),
    "demo": ("demo", "Watch three scripted agents work; start here."),
    "call": ("agents", "Call an event of the running daemon."),
    "spawn": ("agents", "Create an agent under a profile."),
    "agents": ("agents", "Show the living agents as a tree."),
    "revoke": ("agents", "End an agent and all its descendants."),
    "tail": ("audit", "Follow decisions as they are made."),
    "top": ("audit", "Show who and what is busy."),
    "audit": ("audit", "Look up what was decided, and prove that nobody changed it."),
    "review": ("review", "Approve or reject calls and capabilities that wait."),
    "upstream": ("upstream", "Put other MCP servers behind remit."),
    "key": ("agents", "Give keys to clients, list them, take them away."),
    "config": ("definitions", "Show every setting and where it comes from."),
    "doctor": ("doctor", "Find what is wrong with this installation."),
    "completion": ("completion", "Print the completion script of your shell."),
}
"""Every command with the module it lives in and its one line of help."""


class LazyGroup(click.Group):
    """Knows its commands by name and imports one only when it runs."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """In the order of the table: questions first, upkeep last."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of a command."""
        if name not in COMMANDS:
            return None
        command = getattr(module_of(name), name.replace("-", "_"))
        return command if isinstance(command, click.Command) else None

    def get_help(self, ctx: click.Context) -> str:
        """The help, with commands as this one was called."""
        return as_invoked(super().get_help(ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Offer the commands from the table, without importing any of them."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only at the tab key

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = COMMANDS.items()
        return [CompletionItem(n, help=doc) for n, (_, doc) in found if n.startswith(incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"there is no command {args[0]!r}. {hint}".strip())
        return super().resolve_command(ctx, args)


def module_of(name: str) -> ModuleType:
    """The module of a command; imported when it is asked for."""
    return importlib.import_module(f"remit.cli.{COMMANDS[name][0]}")


def invoked_as() -> str:
    """The words in front of the arguments: `remit`, `./tools/run`, `python -m remit`."""
    return os.environ.get("REMIT_INVOKED_AS") or _from_arguments(
        tuple(sys.argv[:1]), tuple(sys.orig_argv)
    )


def as_invoked(text: str) -> str:
    """A text for people, in which every `remit COMMAND` is called as this one was."""
    if _CANONICAL not in text:
        return text
    command = invoked_as()
    return text if command == _CANONICAL else _pattern().sub(lambda _: f"{command} ", text)


@functools.cache
def _from_arguments(program: tuple[str, ...], original: tuple[str, ...]) -> str:
    path = Path(program[0] if program else "")
    if path.name == "__main__.py" and path.parent.name == _CANONICAL:
        at = next((at for at, word in enumerate(original) if word == _CANONICAL), None)
        return _CANONICAL if at is None else shlex.join(original[: at + 1])
    if path.name != _CANONICAL:
        return _CANONICAL  # a program that runs commands inside, as tests do
    found = _on_path(_CANONICAL)
    is_found = found is not None and path.exists() and path.samefile(found)
    return _CANONICAL if is_found else shlex.quote(str(path))


def _on_path(name: str) -> Path | None:
    """The program that a shell would start; importing `shutil` for it costs 3 ms."""
    places = (Path(folder) / name for folder in os.get_exec_path())
    return next((one for one in places if one.is_file() and os.access(one, os.X_OK)), None)


@functools.cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){_CANONICAL} (?=(?:{'|'.join(COMMANDS)})\b(?!-)|--)")
