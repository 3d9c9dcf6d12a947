"""How a command ends: what it prints where, and its exit code.

0 yes or fine, 1 no or problems found, 2 bad input, 3 daemon unreachable.
"""

import os
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

import click
import msgspec

from remit.cli.commands import as_invoked, invoked_as
from remit.errors import DefinitionError, Problem, RemitError

NO = 1
BAD_INPUT = 2
UNREACHABLE = 3

_CLIENT_SIDE = frozenset({"unreachable", "unauthorised", "bad_key", "connection_lost"})
_NO = frozenset(
    {
        "internal",
        "store_unavailable",
        "denied",
        "approval_pending",
        "conflict",
        "exceeds_parent",
        "limit_exceeded",
        "timeout",
        "cancelled",
    }
)


def print_json(value: Any) -> None:
    """Print an answer for programs."""
    encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(encoded.decode())


def say(text: str = "") -> None:
    """Print a line of an answer for people."""
    click.echo(text)


def say_hint(text: str, *, err: bool = False) -> None:
    """Print how something is repaired, if anybody knows."""
    if text:
        click.echo(f"    hint: {as_invoked(text)}", err=err)


def say_source(answer: dict[str, Any], *, aside: bool = False) -> None:
    """Say where an answer comes from, where files and a daemon could differ.

    `aside`: on stderr, because the answer itself goes into a file.
    """
    source = answer["source"]
    if source.is_doubtful:
        mark = "# " if aside else "  "
        click.echo(click.style(f"{mark}source: {source}", dim=True), err=aside)


def counted(count: int, word: str) -> str:
    """`1 tool`, `2 tools`, `2 capabilities`."""
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("y") else f"{count} {word}s"


def limit_text(value: Any) -> str:
    """A limit as people read it: a number, or the beginnings of keys."""
    if value is None:
        return "no limit"
    if isinstance(value, list | tuple):
        return ", ".join(value) or "no key"
    return str(value)


def limits_text(limits: dict[str, Any]) -> str:
    """Limits on one line, each with its value."""
    return ", ".join(f"{name} {limit_text(value)}" for name, value in limits.items())


def next_step(arguments: str, *, aside: bool = False) -> None:
    """End a screen with the one command to go on with; silent when nobody is looking.

    `aside`: on stderr and always, because the answer itself goes into a file.
    """
    if aside or sys.stdout.isatty() or os.environ.get("REMIT_SHOW_NEXT"):
        command = invoked_as()
        line = f"next: {command} {arguments}" if aside else f"\nnext: {command} {arguments}"
        click.echo(click.style(line, dim=True), err=aside)


def first_look(profiles: Iterable[str]) -> str:
    """The command that shows one profile: the starter's, or else the first of one's own."""
    known = sorted(profiles)
    if not known:
        return "lint"
    return f"resolve {'observer' if 'observer' in known else known[0]}"


def say_problems(problems: Iterable[Problem]) -> None:
    """Show problems on stderr, each with its line and a caret."""
    for problem in problems:
        # The place comes first on the line of an error: editors and scripts jump to it.
        mark = "" if problem.is_error else click.style("warning: ", fg="yellow")
        shown = msgspec.structs.replace(problem, hint=as_invoked(problem.hint))
        click.echo(f"{mark}{shown}", err=True)


def fail(error: RemitError, *, as_json: bool = False) -> NoReturn:
    """End with an error that we know."""
    if as_json:
        body = {"code": error.code, "message": error.message, "hint": error.hint}
        print_json({"error": body | {"details": error.details}})
    if isinstance(error, DefinitionError):
        say_problems(error.problems)
    else:
        message = as_invoked(error.message)
        click.echo(click.style("error: ", fg="red") + f"{message} [{error.code}]", err=True)
        say_hint(error.hint, err=True)
    sys.exit(exit_code(error.code))


def exit_code(code: str) -> int:
    """The exit code for an error code."""
    if code in _CLIENT_SIDE:
        return UNREACHABLE
    return NO if code in _NO else BAD_INPUT
