"""What the shell offers at the tab key, and the command completion, which prints its script.

A completion never fails and never prints anything else: whatever goes wrong, it offers nothing.
Nothing is asked that could wait: names come from the files and the store of the home, and only
reviews from the daemon. In bash a colon ends a word, and the names of events have colons.
"""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from remit.app.workbench import definition_files, find_events, read_standing
from remit.cli.commands import COMPLETE, as_invoked
from remit.config.definitions.files import parse_definitions
from remit.config.settings.load import load_settings
from remit.config.settings.lock import as_served
from remit.config.settings.table import Settings
from remit.errors import NotFoundError

_PATIENCE = 2.0
"""Seconds for the daemon to list its reviews."""
_SCRIPT = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local response

    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete $1 2>/dev/null)

    for completion in $response; do
        IFS=',' read type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=($value)
        fi
    done

    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@click.command()
@click.argument("shell", required=False, type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the completion script of SHELL; the one you use when absent."""
    name = shell or Path(os.environ.get("SHELL", "bash")).name
    found = RemitBash if name == "bash" else get_completion_class(name)
    if found is None:
        raise NotFoundError(f"there is no completion for {name!r}", hint="bash, zsh or fish")
    click.echo(found(ctx.find_root().command, {}, "remit", COMPLETE).source())
    if sys.stdout.isatty():
        click.echo(as_invoked(f'# use it: eval "$(remit completion {name})"'), err=True)


def offer_and_exit(command: click.Command) -> None:
    """Print what the shell asks for, and nothing else, whatever happens.

    Args:
        command: the root of all commands.

    Raises:
        SystemExit: always.
    """
    add_completion_class(RemitBash)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the end
    try:
        shell_complete(command, {}, "remit", COMPLETE, os.environ[COMPLETE])
    except (Exception, SystemExit):
        sys.exit(0)
    sys.exit(0)


def offers(kind: str, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
    """The values of a kind that start with what was typed."""
    found: set[str] = set()
    for offer in OFFERS[kind]:
        try:
            with redirect_stdout(sys.stderr):  # what a plug-in prints is no name
                found.update(offer(_settings(ctx)))
        except (Exception, SystemExit):  # noqa: S112 - the other names are still of use
            continue
    return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]


class RemitBash(BashComplete):
    """Reads the line itself, and answers from the last colon on, as bash replaces from there."""

    name = "bash"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """The whole words before the cursor, and the one that is being typed."""
        line = os.environ["COMP_LINE"]
        before = os.fsdecode(os.fsencode(line)[: int(os.environ["COMP_POINT"])])
        words = split_arg_string(before)
        incomplete = words.pop() if words and not before[-1:].isspace() else ""
        self._cut = 0
        if ":" in os.environ.get("COMP_WORDBREAKS", ":"):
            self._cut = incomplete.rfind(":") + 1
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """One line of the answer."""
        return f"{item.type},{item.value[self._cut :]}"


def _settings(ctx: click.Context) -> Settings:
    flags = {"home": ctx.params.get("home") or ctx.find_root().params.get("home")}
    flags |= {name: ctx.params.get(name) for name in ("catalogue", "compositions")}
    return as_served(load_settings(flags, os.environ, str(Path.cwd())))


def _profiles(settings: Settings) -> Iterable[str]:
    found = parse_definitions(definition_files(settings))
    return [one.name for one in found.compositions]


def _capabilities(settings: Settings) -> Iterable[str]:
    found = parse_definitions(definition_files(settings))
    made = [one.capability.id for one in read_standing(settings).made]
    return [*(one.id for one in found.capabilities), *made]


def _agents(settings: Settings) -> Iterable[str]:
    return [one.id for one in read_standing(settings).agents]


def _events(settings: Settings) -> Iterable[str]:
    return find_events(settings).universe.names


def _reviews(settings: Settings) -> Iterable[str]:
    import remit_client.sync  # noqa: PLC0415 - zmq

    with remit_client.sync.connect(home=str(settings.home)) as remit:
        answer = remit.call("review:list", {"limit": 200}, timeout=_PATIENCE)
    return [item["id"] for item in answer["items"]]


OFFERS: dict[str, tuple[Callable[[Settings], Iterable[str]], ...]] = {
    "profile": (_profiles,),
    "agent": (_agents,),
    "subject": (_profiles, _agents),
    "event": (_events,),
    "capability": (_capabilities,),
    "review": (_reviews,),
}
"""What may stand where, by the kinds that `options.completing` names."""
