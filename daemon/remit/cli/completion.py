"""Completion in bash, where a colon ends a word: the names of events have colons."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import BashComplete, CompletionItem, split_arg_string

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from remit.config.settings.table import Settings


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


# What the shell offers at the tab key: names of profiles, agents, events, capabilities, reviews.
#
# A completion never fails and never prints anything else: whatever goes wrong, it offers nothing.
# Nothing is asked that could wait: names come from the files and the store of the home, and only
# reviews from the daemon.


_PATIENCE = 2.0
"""Seconds for the daemon to list its reviews."""

Offer = Callable[["Settings"], Iterable[str]]
Complete = Callable[[click.Context, click.Parameter, str], list["CompletionItem[Any]"]]


def _completing(*offers: Offer) -> Complete:
    """Make the callback of a parameter out of what may stand there."""

    def complete(
        ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list["CompletionItem[Any]"]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only at the tab key

        found: set[str] = set()
        for offer in offers:
            try:
                with redirect_stdout(sys.stderr):  # what a plug-in prints is no name
                    found.update(offer(_settings(ctx)))
            except (Exception, SystemExit):  # noqa: S112 - the other names are still of use
                continue
        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]

    return complete


def _settings(ctx: click.Context) -> "Settings":
    from remit.config.settings.load import load_settings  # noqa: PLC0415
    from remit.config.settings.lock import as_served  # noqa: PLC0415 - only at the tab key

    flags = {"home": ctx.params.get("home") or ctx.find_root().params.get("home")}
    flags |= {name: ctx.params.get(name) for name in ("catalogue", "compositions")}
    return as_served(load_settings(flags, os.environ, str(Path.cwd())))


def _profiles(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import definition_files  # noqa: PLC0415 - only at the tab key
    from remit.config.definitions.parse import parse_definitions  # noqa: PLC0415

    found = parse_definitions(definition_files(settings))
    return [one.name for one in found.compositions]


def _capabilities(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import definition_files, read_standing  # noqa: PLC0415
    from remit.config.definitions.parse import parse_definitions  # noqa: PLC0415

    found = parse_definitions(definition_files(settings))
    made = [one.capability.id for one in read_standing(settings).made]
    return [*(one.id for one in found.capabilities), *made]


def _agents(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import read_standing  # noqa: PLC0415 - only at the tab key

    return [one.id for one in read_standing(settings).agents]


def _events(settings: "Settings") -> Iterable[str]:
    from remit.app.workbench import load_universe  # noqa: PLC0415 - only at the tab key

    return load_universe(settings, None)[0].names


def _reviews(settings: "Settings") -> Iterable[str]:
    import remit_client.sync  # noqa: PLC0415 - zmq

    with remit_client.sync.connect(home=str(settings.home)) as remit:
        answer = remit.call("review:list", {"limit": 200}, timeout=_PATIENCE)
    return [item["id"] for item in answer["items"]]


profiles = _completing(_profiles)
agents = _completing(_agents)
subjects = _completing(_profiles, _agents)
events = _completing(_events)
capabilities = _completing(_capabilities)
reviews = _completing(_reviews)


def offer_and_exit(command: click.Command, variable: str) -> None:
    """Print what the shell asks for, and nothing else, whatever happens.

    Args:
        command: the root of all commands.
        variable: the environment variable that says which shell asks for what.

    Raises:
        SystemExit: always.
    """
    from click.shell_completion import add_completion_class, shell_complete  # noqa: PLC0415

    add_completion_class(RemitBash)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the end
    try:
        shell_complete(command, {}, "remit", variable, os.environ[variable])
    except (Exception, SystemExit):
        sys.exit(0)
    sys.exit(0)
